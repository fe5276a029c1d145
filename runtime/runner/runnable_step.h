// SPDX-License-Identifier: Apache-2.0
//
// What a Runner has to know about a step beside its plan: which values are inputs and reports,
// where the first values of persistent storages come from, what the step scalars are in the next
// step, how far the host's side is, and what gets the state back at the end. A CapturedStep
// (runtime/capture/capture.h) answers from the code that it was traced from; a GraphStep
// (runtime/runner/graph_step.h) from the graph alone, with values that somebody else gives.
// Ids are those of `graph()`; a plan's graph has its own (runtime/runner/step_match.h).
#ifndef STOWAGE_RUNTIME_RUNNER_RUNNABLE_STEP_H_
#define STOWAGE_RUNTIME_RUNNER_RUNNABLE_STEP_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/executor/scalar_feed.h"

namespace stowage::runtime {

/// Host numbers of the optimizer object at one moment: what a checkpoint keeps of it.
struct HostProgress {
  std::vector<double> learningRates;         // by parameter group
  std::map<std::string, double> stepCounts;  // by parameter, of optimizers that count on the host
};

/// Where the first value of a persistent storage comes from.
enum class FirstValue : uint8_t {
  kLive,          // a real tensor that existed before capture: `liveValue`
  kConstruction,  // built under WithoutMemory: `replayConstruction`
  kStep,          // made on demand (optimizer state, values from files): `makeState`
  kShared         // the state of the main step has it: `mainStorageOf`
};

/// How nextScalars compares the step with the code that it was captured from.
struct StepCheck {
  /// Runs all of the code, forward and backward included, and compares every op and every number.
  /// Without it only the update is run.
  bool whole = false;
  /// With `whole`: the value that the running step gives to its `read`-th item(); may wait for it.
  /// Nothing when it is not known before the update. May be empty.
  std::function<std::optional<c10::Scalar>(size_t read)> valueOfRead = {};
};

/// Values that the owner of a step's tensors has for a while.
class LentState {
 public:
  virtual ~LentState() = default;
  /// Everything is as before it was lent. Called by the destructor, too, where it was not.
  virtual ir::Error takeBack() = 0;
};

class RunnableStep {
 public:
  using Deliver = std::function<ir::Error(ir::StorageId, const at::Tensor& bytes)>;
  using ValueOf = std::function<ir::Expected<at::Tensor>(ir::StorageId)>;

  virtual ~RunnableStep() = default;

  virtual const ir::Graph& graph() const = 0;
  /// What is given anew each step, and what the step returns, in order.
  virtual const std::vector<ir::ValueId>& inputs() const = 0;
  virtual const std::vector<ir::ValueId>& reports() const = 0;
  /// Do inputs come with the strides of their values, as in the code that the step is of? Else they
  /// are laid out so before each step.
  virtual bool keepsLayouts() const { return false; }

  /// Is it still the step that the graph is of? Asked before each step, so it must be cheap; what
  /// it cannot see, nextScalars may. Errors: kPlanMismatch.
  virtual ir::Error checkUnchanged() const { return ir::success(); }
  /// Does the step's code ask for other values of the inputs than it was captured with? Then it may
  /// do something else.
  virtual bool inputsDiffer() const { return false; }
  /// Somebody is going to take its steps. Errors: when its numbers have gone on with another.
  virtual ir::Error beginSteps() { return ir::success(); }
  /// The step scalars of the next step, by ScalarId. To be called once per step, from one thread at
  /// a time. Errors: kPlanMismatch when the step is no longer the captured one.
  virtual ir::Expected<std::vector<ScalarValue>> nextScalars(const StepCheck& check) = 0;
  /// Do its numbers depend on the steps before? Else there is nothing to bring along after a pause.
  virtual bool countsSteps() const { return true; }
  /// May the `step`-th call of nextScalars (from 0) compare the whole step with the graph?
  virtual bool canBeChecked(int64_t /*step*/) const { return false; }
  /// What forward and backward read with item(), in order of the reads: values of one element that
  /// the step does not write afterwards.
  virtual std::vector<ir::ValueId> valuesRead() const { return {}; }
  /// Nothing when there is no optimizer object. Not while nextScalars runs.
  virtual HostProgress hostProgress() const = 0;
  virtual void setLearningRates(const std::vector<double>& rates) = 0;

  virtual FirstValue firstValue(ir::StorageId storage) const = 0;
  /// The bytes of a kLive storage, uint8 [n].
  virtual at::Tensor liveValue(ir::StorageId storage) const = 0;
  /// Delivers each kConstruction storage that `wanted` asks for.
  virtual ir::Error replayConstruction(const std::function<bool(ir::StorageId)>& wanted,
                                       const Deliver& deliver) const = 0;
  /// The first value of a kStep storage, uint8 [n] on the CPU. `valueOf` gives the bytes of other
  /// persistent storages that it is made from (a master weight from its parameter).
  virtual ir::Expected<at::Tensor> makeState(ir::StorageId storage,
                                             const ValueOf& valueOf) const = 0;
  /// Of a further step, which works on the state of a main step: which storage of that one it is.
  /// Invalid for one of its own, which it only reads.
  virtual ir::StorageId mainStorageOf(ir::StorageId /*storage*/) const { return {}; }
  /// From `wake` to `sleep`, module and optimizers hold the tensors of a further step, else those
  /// of its main step. Not while nextScalars runs.
  virtual void wake() {}
  virtual void sleep() {}
  /// Gives parameters, buffers and tensors from outside what they hold now, until it is taken back.
  /// `bytesOf` returns uint8 [n] that nobody else uses. Not while nextScalars runs. Errors:
  /// kUnsupported where there is no module.
  virtual ir::Expected<std::unique_ptr<LentState>> lend(const ValueOf& /*bytesOf*/) {
    return ir::makeError(
        ir::ErrorCode::kUnsupported,
        "the step is known by its graph alone, expected one with a module to read");
  }
  /// Gives the state to whoever owned it before. `bytesOf` returns uint8 [n].
  virtual ir::Error storeTo(const ValueOf& bytesOf) = 0;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUNNER_RUNNABLE_STEP_H_
