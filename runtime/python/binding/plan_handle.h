// SPDX-License-Identifier: Apache-2.0
//
// A plan of a Python step, as `torch.classes.stowage.Plan`: what it says, its file, and a run of
// it.
#ifndef STOWAGE_RUNTIME_PYTHON_BINDING_PLAN_HANDLE_H_
#define STOWAGE_RUNTIME_PYTHON_BINDING_PLAN_HANDLE_H_

#include <torch/custom_class.h>

#include <cstdint>
#include <string>

#include "runtime/python/binding/step_handle.h"
#include "runtime/session.h"

namespace stowage::python {

class PlanHandle : public torch::CustomClassHolder {
 public:
  /// `request`: JSON. "budget": bytes, or with "of_peak" millionths of the unplanned peak. "ways":
  /// an infeasible error says what else would do, which takes a few times as long. All others may
  /// lack: "host" (bytes), "allow" (words of `stowage plan --allow`), "disk" (bytes, with
  /// "disk_folder" and "verify_disk").
  PlanHandle(const c10::intrusive_ptr<StepHandle>& step, const std::string& request);

  std::string summaryText() const;
  std::string summaryJson() const;
  /// Device memory over the step as an SVG: without the plan and with it.
  std::string memorySvg() const;
  /// Bytes; what the step was planned for is at least as much. 0 where the host's memory is what
  /// keeps it from being smaller. Takes as long as planning. The step is captured still.
  int64_t smallestBudget() const;
  bool isCaptured() const { return step_->isCaptured(); }
  void save(const std::string& path) const;

  const Plan& plan() const { return plan_; }
  /// That of rank 0, which all ranks run.
  void setPlan(Plan plan) { plan_ = std::move(plan); }
  const PlanOptions& options() const { return request_.options; }
  bool verifiesDisk() const { return request_.verifyDisk; }
  const c10::intrusive_ptr<StepHandle>& step() const { return step_; }

 private:
  struct Request {
    PlanOptions options;
    bool verifyDisk = false;
    bool ways = false;
  };
  static Request parse(const std::string& text);
  static Plan makePlan(const Step& step, const Request& request);

  c10::intrusive_ptr<StepHandle> step_;
  Request request_;
  Plan plan_;
};

}  // namespace stowage::python

#endif  // STOWAGE_RUNTIME_PYTHON_BINDING_PLAN_HANDLE_H_
