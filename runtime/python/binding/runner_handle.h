// SPDX-License-Identifier: Apache-2.0
//
// A training under way, as `torch.classes.stowage.Runner`: steps, state, what it takes.
#ifndef STOWAGE_RUNTIME_PYTHON_BINDING_RUNNER_HANDLE_H_
#define STOWAGE_RUNTIME_PYTHON_BINDING_RUNNER_HANDLE_H_

#include <torch/custom_class.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/python/binding/plan_handle.h"
#include "runtime/runner/runner.h"

namespace stowage::python {

class RunnerHandle : public torch::CustomClassHolder {
 public:
  explicit RunnerHandle(const c10::intrusive_ptr<PlanHandle>& plan);

  /// What the step reports, on the CPU.
  std::vector<at::Tensor> runStep(const std::vector<at::Tensor>& inputs);
  void finish();
  /// Python is called with "look" while the module holds the training's values.
  void read(int64_t pythonCall);
  void storeBack();
  void save(const std::string& folder);
  /// Steps that the checkpoint had.
  int64_t load(const std::string& folder);
  /// JSON: steps, peak, arena, memory beside the arena, time of a re-trace.
  std::string facts();

 private:
  c10::intrusive_ptr<PlanHandle> plan_;
  Step step_;  // stays captured while it runs
  std::unique_ptr<runtime::Runner> runner_;
};

}  // namespace stowage::python

#endif  // STOWAGE_RUNTIME_PYTHON_BINDING_RUNNER_HANDLE_H_
