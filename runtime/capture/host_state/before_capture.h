// SPDX-License-Identifier: Apache-2.0
//
// What module and optimizer held before a capture beside their tensors' values, so that a capture
// leaves no trace: which gradients the parameters had, the optimizers' state and host numbers.
// Inputs: module tensors and optimizers before the swap. `putBack` belongs after swapOut.
// Invariants: entries of an optimizer's state that the captured steps made are gone afterwards.
// Not here: the tensors' values (module_tensors.h), what user code keeps elsewhere (a scheduler).
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_BEFORE_CAPTURE_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_BEFORE_CAPTURE_H_

#include <ATen/core/Tensor.h>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/capture/host_state/module_tensors.h"
#include "runtime/capture/host_state/optimizer_state.h"

namespace stowage::runtime {

using GradientsOfParameters = std::vector<std::pair<at::Tensor, at::Tensor>>;

class BeforeCapture {
 public:
  BeforeCapture(const ModuleTensors& tensors, const OptimizerList& optimizers);
  /// To be called once.
  void putBack();
  /// By parameter; may be undefined.
  const GradientsOfParameters& gradients() const { return gradients_; }

 private:
  GradientsOfParameters gradients_;
  OptimizerList optimizers_;
  OptimizerNumbers numbers_;
  std::vector<std::unique_ptr<StepOptimizer::SavedState>> state_;  // by optimizer
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_BEFORE_CAPTURE_H_
