// SPDX-License-Identifier: Apache-2.0
//
// What capture must know of optimizer objects: their state tensors by name, and their host numbers
// (options, step counts), which can be saved, compared and put back.
// Known: torch's Adam, AdamW, SGD, RMSprop, Adagrad and stowage::AdamW. Of any other optimizer only
// the learning rates are seen here; its tensors are found in the trace and named by what made them.
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_STATE_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_STATE_H_

#include <llvm/ADT/STLFunctionalExtras.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "runtime/capture/host_state/optimizer_list.h"

namespace stowage::runtime {

/// `function` in "m(wte.weight)".
using VisitState =
    llvm::function_ref<void(const char* function, ir::Role role, at::Tensor& tensor)>;

/// Visits the defined tensors in the state of one parameter, if there is state.
void forEachStateTensor(const OptimizerList& optimizers, const at::Tensor& parameter,
                        VisitState visit);

bool isIn(const OptimizerList& optimizers, const at::Tensor& parameter);

/// How many steps the state of one parameter has seen, where the optimizer counts on the host.
std::optional<double> stepCountOf(const OptimizerList& optimizers, const at::Tensor& parameter);

/// Drops the tensors that an optimizer keeps beside its state and makes anew when they are missing
/// (stowage::AdamW's learning rates), which a capture may have made without memory.
void forgetWorkingTensors(const OptimizerList& optimizers);

/// The host numbers of optimizers at one moment.
class OptimizerNumbers {
 public:
  static OptimizerNumbers of(const OptimizerList& optimizers);
  /// Writes them into the same ones. State that did not exist yet gets step count 0.
  void putBack(const OptimizerList& optimizers) const;
  /// Compares the options; step counts advance by themselves.
  bool equals(const OptimizerList& optimizers) const { return equals(of(optimizers)); }
  bool equals(const OptimizerNumbers& other) const;
  /// Are they optimizers whose host numbers are all known?
  bool isComplete() const;

 private:
  struct Steps {
    const torch::optim::Optimizer* optimizer;
    void* parameter;
    double count;
  };
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options_;
  std::vector<double> rates_;
  std::vector<Steps> steps_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_STATE_H_
