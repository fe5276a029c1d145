// SPDX-License-Identifier: Apache-2.0
//
// What module and optimizer held before a capture beside their tensors' values, so that a capture
// leaves no trace: which gradients the parameters had, the optimizer's state and host numbers.
// Inputs: module tensors and optimizer before the swap. `putBack` belongs after swapOut.
// Invariants: entries of the optimizer's state that the captured steps made are gone afterwards.
// Not here: the tensors' values (module_tensors.h), what user code keeps elsewhere (a scheduler).
#ifndef STOWAGE_RUNTIME_CAPTURE_BEFORE_CAPTURE_H_
#define STOWAGE_RUNTIME_CAPTURE_BEFORE_CAPTURE_H_

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/capture/module_tensors.h"
#include "runtime/capture/optimizer_state.h"

namespace stowage::runtime {

class BeforeCapture {
 public:
  /// `optimizer` may be null, and outlives the result.
  BeforeCapture(const ModuleTensors& tensors, torch::optim::Optimizer* optimizer);
  /// To be called once.
  void putBack();

 private:
  void putStateBack();

  struct State {
    void* parameter;
    std::unique_ptr<torch::optim::OptimizerParamState> copy;  // null: of a class that has no copies
  };
  std::vector<std::pair<at::Tensor, at::Tensor>> gradients_;  // by parameter; may be undefined
  torch::optim::Optimizer* optimizer_;
  std::optional<OptimizerNumbers> numbers_;
  std::vector<State> state_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_BEFORE_CAPTURE_H_
