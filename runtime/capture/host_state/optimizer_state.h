// SPDX-License-Identifier: Apache-2.0
//
// What capture asks of all optimizers of a step together: state tensors of a parameter by name, and
// host numbers at one moment.
// Not here: what an optimizer of one language keeps where (step_optimizer.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_STATE_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_STATE_H_

#include <memory>
#include <optional>
#include <vector>

#include "runtime/capture/host_state/optimizer_list.h"
#include "runtime/capture/host_state/step_optimizer.h"

namespace stowage::runtime {

/// Visits the defined tensors in the state of one parameter, if there is state.
void forEachStateTensor(const OptimizerList& optimizers, const at::Tensor& parameter,
                        VisitState visit);

bool isIn(const OptimizerList& optimizers, const at::Tensor& parameter);

/// Of the first optimizer that counts the parameter's steps on the host.
std::optional<double> stepCountOf(const OptimizerList& optimizers, const at::Tensor& parameter);

void forgetWorkingTensors(const OptimizerList& optimizers);

/// The host numbers of optimizers at one moment.
class OptimizerNumbers {
 public:
  static OptimizerNumbers of(const OptimizerList& optimizers);
  /// Writes them into the same ones.
  void putBack() const;
  /// Do the optimizers have these options now? Step counts advance by themselves.
  bool areCurrent() const { return equals(of(optimizers_)); }
  bool equals(const OptimizerNumbers& other) const;
  /// Are they of optimizers whose host numbers are all known?
  bool isComplete() const;

 private:
  OptimizerList optimizers_;
  std::vector<std::unique_ptr<StepOptimizer::Numbers>> numbers_;  // by optimizer
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_STATE_H_
