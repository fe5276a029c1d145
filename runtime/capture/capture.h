// SPDX-License-Identifier: Apache-2.0
//
// Turns a training step, written as ordinary libtorch code, into an ir::Graph without running it.
// Two closures, the inputs' shapes and a target -> the graph, where each persistent storage's first
// value comes from, and the step scalars of every later step.
// How: the module's tensors get storages without memory, four steps run on them, every ATen call is
// recorded below autograd. Step 1 creates optimizer state; steps 2 to 4 must be the same step.
// Ownership: while a CapturedStep lives, the module and the optimizer hold tensors without memory.
// The values they had are held here until `releaseLiveValues`; `storeTo` gives the tensors memory
// again. A CapturedStep destroyed before storeTo puts back what module and optimizer held: values,
// gradients, optimizer state and options. The optimizer outlives it.
// Not here: running a step, planning, files.
#ifndef STOWAGE_RUNTIME_CAPTURE_CAPTURE_H_
#define STOWAGE_RUNTIME_CAPTURE_CAPTURE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "runtime/capture/host_state/optimizer_list.h"
#include "runtime/executor/scalar_feed.h"
#include "runtime/runner/runnable_step.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class LRScheduler;
}

namespace stowage::runtime {

/// Where `update` keeps host numbers that advance from step to step.
enum class HostState : uint8_t {
  /// Perhaps in places that capture cannot see (a scheduler or counter inside the closure). The
  /// objects stay four steps ahead: the scalars of the first four steps are those recorded during
  /// capture. Options of `optimizer` that are changed by hand before they are used up are followed
  /// in what optimizer->step() computes with them; where `update` changes options as well, that is
  /// refused (kPlanMismatch). An `update` that itself computes with the options is to be declared.
  kHidden,
  /// Only in `optimizer`, `schedulers` and what `rewind` puts back. All are put back after capture;
  /// changes by hand count from the first step on.
  kDeclared
};

/// Host numbers that `loss` computes with.
enum class LossNumbers : uint8_t {
  /// Those that changed while the step was captured are taken anew in each step; all others stay as
  /// they were, and a step in which one differs is refused.
  kCaptured,
  /// All are taken anew in each step. `loss` is traced before each step begins, so steps are longer
  /// by that time. With HostState::kDeclared.
  kEachStep
};

class CapturedStep;

/// To be called right before each step() of an optimizer: what follows backward is the update.
using NoteUpdate = std::function<void()>;

struct StepFunctions {
  /// Forward, loss and backward. Returns what the step reports (scalar losses).
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)> loss;
  /// Clips, steps the optimizer, drops the gradients, steps the scheduler.
  std::function<void()> update;
  std::shared_ptr<torch::nn::Module> module;
  OptimizerList optimizer = {};  // all that `update` uses: name their state; may be absent
  HostState hostState = HostState::kHidden;
  std::vector<torch::optim::LRScheduler*> schedulers;  // with kDeclared
  std::function<void()> rewind;                        // with kDeclared; may be absent
  LossNumbers lossNumbers = LossNumbers::kCaptured;
  /// Instead of `loss` and `update`: all of it in one function, with kDeclared. Returns what the
  /// step reports (scalars). While a plan runs, each step traces all of it.
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs,
                                        const NoteUpdate& noteUpdate)>
      whole = {};
  /// The values of the inputs in the step that is being traced, on the CPU: for what host code asks
  /// about them. Empty: not known. With `whole`.
  std::function<std::vector<at::Tensor>()> inputValues = {};
  /// Told of each value of the inputs that host code asked for, and got: the step is captured for
  /// such. May be absent.
  std::function<void(double value)> noteAssumption = {};
  /// Told of each value that host code asked for and that only the running step knows. May be
  /// absent.
  std::function<void()> noteUnknownRead = {};
  /// A step captured before from the same module and optimizers, which hold its tensors. This one
  /// is a further step: it works on the same state, and sleeps once it is captured. Outlives this.
  /// With `whole`.
  CapturedStep* main = nullptr;
  /// False: forward alone, without backward and update; returns tensors of any shape. With `whole`.
  bool trains = true;
};

struct InputSpec {
  std::string name;
  std::vector<int64_t> sizes;
  c10::ScalarType dtype;
  std::vector<int64_t> strides = {};  // empty: contiguous
};

struct CaptureOptions {
  ir::Target target;
  std::string name = "step";
  std::string recipe;          // kept as provenance
  bool keepGradients = false;  // marks the gradients as outputs of the step
};

class CapturedStep : public RunnableStep {
 public:
  struct Impl;
  explicit CapturedStep(std::unique_ptr<Impl> impl);
  ~CapturedStep() override;
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  const ir::Graph& graph() const override;
  /// One value per InputSpec, in order.
  const std::vector<ir::ValueId>& inputs() const override;
  /// What `loss` returned, in order; then what the step read back with item(), in order of the
  /// reads.
  const std::vector<ir::ValueId>& reports() const override;
  const std::vector<ir::ValueId>& readBacks() const;

  /// Errors: kPlanMismatch when train() or eval() of a submodule, or requires_grad of a parameter,
  /// is not as it was when capture ended.
  ir::Error checkUnchanged() const override;
  bool inputsDiffer() const override;
  /// The step scalars of the next step, by ScalarId, from running `update` (and `loss`, where it
  /// has step scalars or the step is checked) once more on tensors without memory. The first call
  /// answers for step 1. To be called once per step, from one thread at a time. Errors:
  /// kPlanMismatch when the step is no longer the captured one.
  ir::Expected<std::vector<ScalarValue>> nextScalars(const StepCheck& check) override;
  /// Not where host state is hidden: the closures cannot run again for the steps that ran during
  /// capture.
  bool canBeChecked(int64_t step) const override;
  bool keepsLayouts() const override { return true; }
  std::vector<ir::ValueId> valuesRead() const override;

  /// Errors: kInvalidArgument when somebody began before.
  ir::Error beginSteps() override;
  /// Nothing when the step names no optimizer. Not while nextScalars runs.
  HostProgress hostProgress() const override;
  void setLearningRates(const std::vector<double>& rates) override;

  FirstValue firstValue(ir::StorageId storage) const override;
  /// The bytes of a kLive storage, uint8 [n], on the device where they were. Undefined after
  /// releaseLiveValues.
  at::Tensor liveValue(ir::StorageId storage) const override;
  void releaseLiveValues();

  /// Runs the recorded construction on the CPU, from the state that torch's default CPU generator
  /// had then, and delivers each kConstruction storage that `wanted` asks for as soon as it is
  /// final. Equal, bit for bit, to constructing with memory, and leaves the generator as that would
  /// have. Holds what the construction itself needs at one time, not the model.
  ir::Error replayConstruction(const std::function<bool(ir::StorageId)>& wanted,
                               const Deliver& deliver) const override;
  /// The first value of a kStep storage, uint8 [n] on the CPU. `valueOf` gives the bytes of other
  /// persistent storages that it is made from (a master weight from its parameter).
  ir::Expected<at::Tensor> makeState(ir::StorageId storage, const ValueOf& valueOf) const override;

  ir::StorageId mainStorageOf(ir::StorageId storage) const override;
  void wake() override;
  void sleep() override;

  ir::Expected<std::unique_ptr<LentState>> lend(const ValueOf& bytesOf) override;
  /// Gives every tensor of module and optimizers its memory back: `bytesOf` returns uint8 [n],
  /// whose storage the tensors then share. Tensors from outside that the step writes get their
  /// values. Afterwards nextScalars fails.
  ir::Error storeTo(const ValueOf& bytesOf) override;

  /// For captureStep, which fills it.
  Impl& internals();

 private:
  std::unique_ptr<Impl> impl_;
};

/// Captures one training step for `options.target`. Errors: kUnsupported, naming op and module, for
/// what a static plan cannot hold; kEnvironment when the target's device type does not exist in
/// this process; kTorch for errors of the closures themselves.
ir::Expected<std::unique_ptr<CapturedStep>> captureStep(StepFunctions functions,
                                                        std::vector<InputSpec> inputs,
                                                        CaptureOptions options);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_CAPTURE_H_
