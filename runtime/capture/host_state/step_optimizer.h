// SPDX-License-Identifier: Apache-2.0
//
// One optimizer object as capture and runner see it, whatever language it is written in: which
// parameters it steps, the tensors that it keeps for each, and its host numbers (options, step
// counts), which can be saved, compared and put back.
// Implemented by libtorch_optimizer.h for torch::optim, and by runtime/python/binding for
// torch.optim of Python.
// Not here: what several optimizers of one step are together (optimizer_state.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_STEP_OPTIMIZER_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_STEP_OPTIMIZER_H_

#include <ATen/core/Tensor.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/StringRef.h>

#include <memory>
#include <optional>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::runtime {

/// `function` in "m(wte.weight)".
using VisitState =
    llvm::function_ref<void(llvm::StringRef function, ir::Role role, const at::Tensor& tensor)>;

class StepOptimizer {
 public:
  /// Host numbers at one moment; what they are is the optimizer's own matter.
  class Numbers {
   public:
    virtual ~Numbers() = default;
  };
  /// The state as it was at one moment: which entries there were, and their tensor objects.
  class SavedState {
   public:
    virtual ~SavedState() = default;
  };

  virtual ~StepOptimizer() = default;

  /// Errors: kUnsupported for one whose step no static plan can hold, with what to do.
  virtual ir::Error checkUsable() const = 0;
  /// Of all groups, in order.
  virtual std::vector<at::Tensor> parameters() const = 0;
  /// Visits the defined tensors in the state of one parameter, if there is state.
  virtual void forEachStateTensor(const at::Tensor& parameter, VisitState visit) const = 0;
  /// How many steps the state of one parameter has seen, where they are counted on the host.
  virtual std::optional<double> stepCountOf(const at::Tensor& parameter) const = 0;
  /// By parameter group.
  virtual std::vector<double> learningRates() const = 0;
  /// As many as there are groups, or fewer.
  virtual void setLearningRates(llvm::ArrayRef<double> rates) = 0;

  virtual std::unique_ptr<Numbers> numbers() const = 0;
  /// State that did not exist when they were taken gets step count 0.
  virtual void putBack(const Numbers& numbers) = 0;
  /// Compares the options; step counts advance by themselves.
  virtual bool sameOptions(const Numbers& some, const Numbers& others) const = 0;
  /// Do they hold all that the optimizer keeps on the host?
  virtual bool isComplete(const Numbers& numbers) const = 0;

  virtual std::unique_ptr<SavedState> saveState() const = 0;
  /// Entries that were made since are gone afterwards. To be called once with each.
  virtual void putStateBack(SavedState& saved) = 0;

  /// Drops the tensors that it keeps beside its state and makes anew when they are missing, which a
  /// capture may have made without memory.
  virtual void forgetWorkingTensors() {}
  /// step(), without what else the update does.
  virtual void step() = 0;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_STEP_OPTIMIZER_H_
