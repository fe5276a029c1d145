// SPDX-License-Identifier: Apache-2.0
//
// What capture must know of an optimizer object: its state tensors by name, and its host numbers
// (options, step counts), which can be saved, compared and put back.
// Known: torch's Adam, AdamW, SGD, RMSprop, Adagrad and stowage::AdamW. Of any other optimizer only
// the learning rates are seen here; its tensors are found in the trace and named by what made them.
#ifndef STOWAGE_RUNTIME_CAPTURE_OPTIMIZER_STATE_H_
#define STOWAGE_RUNTIME_CAPTURE_OPTIMIZER_STATE_H_

#include <llvm/ADT/STLFunctionalExtras.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace stowage::runtime {

/// `function` in "m(wte.weight)".
using VisitState =
    llvm::function_ref<void(const char* function, ir::Role role, at::Tensor& tensor)>;

/// Visits the defined tensors in the state of one parameter, if there is state.
void forEachStateTensor(torch::optim::Optimizer& optimizer, const at::Tensor& parameter,
                        VisitState visit);

/// How many steps the state of one parameter has seen, where the optimizer counts on the host.
std::optional<double> stepCountOf(torch::optim::Optimizer& optimizer, const at::Tensor& parameter);

/// Drops the tensors that an optimizer keeps beside its state and makes anew when they are missing
/// (stowage::AdamW's learning rates), which a capture may have made without memory.
void forgetWorkingTensors(torch::optim::Optimizer& optimizer);

/// The host numbers of an optimizer at one moment.
class OptimizerNumbers {
 public:
  static OptimizerNumbers of(torch::optim::Optimizer& optimizer);
  /// Writes them into `optimizer`. State that did not exist yet gets step count 0.
  void putBack(torch::optim::Optimizer& optimizer) const;
  /// Compares the options; step counts advance by themselves.
  bool equals(torch::optim::Optimizer& optimizer) const { return equals(of(optimizer)); }
  bool equals(const OptimizerNumbers& other) const;
  /// Is it an optimizer whose host numbers are all known?
  bool isComplete() const;

 private:
  struct Steps {
    void* parameter;
    double count;
  };
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options_;
  std::vector<double> rates_;
  std::vector<Steps> steps_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPTIMIZER_STATE_H_
