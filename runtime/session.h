// SPDX-License-Identifier: Apache-2.0
//
// The one-call interface: a training step of somebody's own, captured, planned within a budget and
// run. Two closures, a module, the inputs' examples -> Step; a budget -> Plan, or an infeasible
// error with the smallest budget that works; both -> Runner, called like the loss.
//   auto step = stowage::capture({.loss = ..., .update = ..., .module = model,
//                                 .optimizer = &optimizer}, exampleTokens, exampleTargets);
//   auto plan = stowage::plan(step, {.budget = 24_GiB});
//   auto runner = stowage::Runner::create(plan, step);
//   for (auto& [tokens, targets] : batches) at::Tensor loss = runner(tokens, targets);
//   runner.save("checkpoint");  runner.storeTo(model);
// Errors: a plan that does not fit is an answer, so `plan` returns Expected; everything else that
// goes wrong is thrown as Failure, as libtorch throws. This is the only part of the runtime that
// plans; its parts can be had one by one without it.
#ifndef STOWAGE_RUNTIME_SESSION_H_
#define STOWAGE_RUNTIME_SESSION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/size.h"
#include "ir/base/units.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "passes/allowed_actions.h"
#include "planner/problem/problem.h"
#include "runtime/capture/capture.h"
#include "runtime/runner/runner.h"

namespace stowage::runtime {
class LaunchedTraining;
}

namespace stowage {

using runtime::HostState;
using runtime::LossNumbers;
using runtime::OptimizerList;

/// What went wrong, with the code that tells kinds apart.
class Failure : public std::runtime_error {
 public:
  Failure(ir::ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ir::ErrorCode code() const { return code_; }

 private:
  ir::ErrorCode code_;
};

/// The value, or the error thrown as Failure.
template <typename T>
T orThrow(ir::Expected<T> value) {
  if (value) return std::move(*value);
  ir::Error error = value.takeError();
  const ir::PlanError payload = ir::takePayload(std::move(error));
  throw Failure(payload.code(), ir::describe(ir::makeError(payload)));
}
void orThrow(ir::Error error);

/// The processes that a launcher (torchrun) started, this one among them, met for one training:
///   auto ranks = stowage::Ranks::join();
///   auto step = stowage::capture({..., .ranks = ranks.count()}, batch);
///   auto runner = stowage::Runner::create(plan, step, {.ranks = &ranks});
/// Each has a shard of parameters and optimizer state, takes batches of its own and reports its own
/// loss; all make the same calls in the same order, each with the same module and first values.
class Ranks {
 public:
  /// Waits for all. Without a launcher this process is alone. Each training of a process has its
  /// own. Throws Failure: kEnvironment for variables of a launcher that are wrong, or ranks that do
  /// not come.
  static Ranks join();
  static ir::Expected<Ranks> tryJoin();
  int64_t rank() const;
  int64_t count() const;
  /// Null for a process that is alone.
  const runtime::TrainingRanks* internals() const;

 private:
  Ranks() = default;
  std::shared_ptr<runtime::LaunchedTraining> joined_;
};

/// Any module: a shared pointer to one, or a holder made by TORCH_MODULE.
class ModulePointer {
 public:
  ModulePointer() = default;
  template <typename Module>
  ModulePointer(std::shared_ptr<Module> module)  // NOLINT(google-explicit-constructor)
      : module_(std::move(module)) {}
  template <typename Holder>
  requires requires(const Holder& holder) { holder.ptr(); }
  ModulePointer(const Holder& holder)  // NOLINT(google-explicit-constructor)
      : module_(holder.ptr()) {}
  const std::shared_ptr<torch::nn::Module>& get() const { return module_; }

 private:
  std::shared_ptr<torch::nn::Module> module_;
};

/// One training step as its author writes it.
template <typename... Inputs>
struct StepDescription {
  /// Forward, loss and backward. Returns the loss, a scalar. Steps of the plan do not run it, but
  /// trace it on tensors without memory (RunOptions::checkEvery): a step in which it does something
  /// else than when it was captured is refused. Numbers that it reads from outside may change as
  /// `lossNumbers` says; tensors that it reads from outside are constants.
  std::function<at::Tensor(const Inputs&...)> loss = {};
  /// Clips, steps the optimizer, drops the gradients, steps the scheduler.
  std::function<void()> update = {};
  ModulePointer module = {};
  /// What `update` steps: `&adam`, or `{&generatorsAdam, &criticsAdam}`. Names its state, in plans
  /// and in checkpoints, and gets it back at the end.
  OptimizerList optimizer = {};
  std::string device = "cpu";
  std::vector<std::string> inputNames = {};  // default: "input0", "input1", ...
  /// Capture runs `update` four times. The optimizers' numbers are put back afterwards. Schedulers
  /// and counters inside `update` stay four steps ahead, which the first four steps of a runner
  /// allow for; plain libtorch after a step that was dropped or stored earlier than that would go
  /// on with a wrong rate. kDeclared says that every number that `update` advances is in
  /// `optimizer` or `schedulers`, or is put back by `rewind`: then all are. Also needed where rates
  /// are set by hand during those steps and `update` steps a scheduler, or computes with the rate
  /// itself. Naming any declares.
  HostState hostState = HostState::kHidden;
  std::vector<torch::optim::LRScheduler*> schedulers = {};
  std::function<void()> rewind = {};
  /// kEachStep where numbers of the loss change after its first steps: a weight that warms up, a
  /// term that joins late, a dropout rate that is set. With a declared host state.
  LossNumbers lossNumbers = LossNumbers::kCaptured;
  /// Processes that train together, each with 1/ranks of what the optimizer updates (Ranks). Then
  /// graph, plan and budget are those of each, and steps are refused whose ranks would train apart.
  int64_t ranks = 1;
};

/// A captured step. Copies are the same step. While it lives, module and optimizer hold tensors
/// without memory; when the last copy goes (or capture fails), they get back what they held before:
/// values, gradients, optimizer state and options (schedulers only when the description names
/// them). After storeTo they keep what it stored. Optimizer and named schedulers outlive the last
/// copy.
class Step {
 public:
  const ir::Graph& graph() const;
  const ir::Target& target() const;

  struct Impl;
  explicit Step(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl& internals() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

namespace detail {
struct AnyStep {
  runtime::StepFunctions functions;
  std::string device;
  std::vector<std::string> inputNames;
  /// libtorch's mode while it runs; nothing: deterministic.
  std::optional<bool> deterministic = {};
  int64_t ranks = 1;
};
Step capture(AnyStep step, const std::vector<at::Tensor>& examples);
/// The same for callers without exceptions.
ir::Expected<Step> tryCapture(AnyStep step, const std::vector<at::Tensor>& examples);
}  // namespace detail

/// Traces the step on tensors without memory, shaped like `examples`. Throws Failure: kUnsupported,
/// naming op and module, for what a static plan cannot hold.
template <typename... Inputs>
Step capture(const StepDescription<Inputs...>& description, const Inputs&... examples) {
  detail::AnyStep step;
  if (description.loss) {
    step.functions.loss = [loss = description.loss](const std::vector<at::Tensor>& inputs) {
      const auto call = [&]<size_t... I>(std::index_sequence<I...>) { return loss(inputs[I]...); };
      return std::vector<at::Tensor>{call(std::index_sequence_for<Inputs...>())};
    };
  }
  step.functions.update = description.update;
  step.functions.module = description.module.get();
  step.functions.optimizer = description.optimizer;
  const bool names = !description.schedulers.empty() || description.rewind;
  step.functions.hostState = names ? HostState::kDeclared : description.hostState;
  step.functions.schedulers = description.schedulers;
  step.functions.rewind = description.rewind;
  step.functions.lossNumbers = description.lossNumbers;
  step.ranks = description.ranks;
  step.device = description.device;
  step.inputNames = description.inputNames;
  return detail::capture(std::move(step), {examples...});
}

struct PlanOptions {
  /// Of device memory for the whole step, state included: 24_GiB, or percentOfPeak(60) of the bytes
  /// that are alive at once when nothing is moved.
  Size budget = {};
  /// With `hostStep` updates may run on the host. On the CPU that keeps the bits of plain libtorch;
  /// on a GPU such updates have the bits of the CPU's kernels.
  passes::AllowedActions allowed = {};
  /// Of host memory, and of a disk for what the host has no room for: {.host = 64_GiB, .disk =
  /// 500_GiB}.
  planner::Limits limits = {};
  std::vector<planner::Pin> pins = {};
  /// A folder on that disk. Its rates are measured, once in the process; without it they are the
  /// target's. Runs use it unless RunOptions name another one.
  std::string diskFolder = {};
};

/// A verified schedule within a budget. Copies are the same plan.
class Plan {
 public:
  const ir::Graph& graph() const;  // in the order that the schedule is about
  const ir::Schedule& schedule() const;
  Bytes budget() const;
  Bytes keepAll() const;  // what the step needs when nothing is moved or recomputed
  /// Time of a step once steps follow each other, from costs measured on this machine. The first
  /// step takes longer: nothing is prefetched for it.
  Nanoseconds predicted() const;
  /// The highest byte of device memory that a step uses: at most the budget.
  Bytes peak() const;

  /// Writes what `stowage plan --embed -o` writes: the whole file or none, over one that is there.
  /// Throws Failure: kEnvironment.
  void save(const std::string& path) const;
  ir::Error trySave(const std::string& path) const;
  /// Measures the step's ops, and plans nothing. Throws Failure: kIo, kParse; kPlanMismatch for a
  /// plan of another step or machine; kViolation for one that would not give the step's results, or
  /// has too little memory for what ops need here.
  static Plan load(const std::string& path, const Step& step);

  struct Impl;
  explicit Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& internals() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Measures the step's ops on this machine (once per Step; for a GPU that is not here, estimates
/// them by its profile), then plans. Errors: kInfeasible with the smallest budget that works;
/// kInvalidArgument and kEnvironment for a folder that is not on a disk.
ir::Expected<Plan> plan(const Step& step, const PlanOptions& options);
/// An infeasible error of `plan`, and what else would do than a larger budget
/// (ir::Infeasible::ways): "allow row-blocks", "a disk of 2.00 GiB". Plans once for each way, so it
/// takes a few times as long. Other errors come back as they are.
ir::Error addWaysOut(ir::Error error, const Step& step, const PlanOptions& options);

struct RunOptions {
  /// How often steps are compared with the closures: 1: each, the default; n > 1: the first 16 and
  /// every n-th; 0: none. A difference ends the training before the step's update; it can be saved
  /// and stored back. Comparing traces the closures beside the step, on another thread; it costs
  /// nothing where the step takes longer than that (tools/docs/limits.md). `loss` runs in compared
  /// steps alone: with n > 1 it may not count. One that reads values with item() is compared each
  /// time, unless none is.
  std::optional<int64_t> checkEvery = {};
  /// Where a plan that keeps bytes on disk makes its file, which has no name and is gone at the
  /// end; default: PlanOptions::diskFolder.
  std::string diskFolder = {};
  bool verifyDisk = false;  // compares checksums of what is read there with what was written
  /// Those that the step was captured for; all run rank 0's plan. Outlive the runner; not several
  /// runners at once.
  const Ranks* ranks = nullptr;
};

/// Runs the steps of a plan. Holds the model's and the optimizer's values until storeTo.
class Runner {
 public:
  /// Throws Failure: kInvalidArgument for a plan that keeps bytes on disk where no folder is named.
  static Runner create(const Plan& plan, const Step& step, const RunOptions& options = {});
  /// An infeasible plan is thrown.
  static Runner create(ir::Expected<Plan>& plan, const Step& step, const RunOptions& options = {});

  /// One step; returns the loss, on the CPU. Inputs have the sizes and strides of the examples.
  /// Throws Failure: kPlanMismatch when train() or eval() of a submodule, or requires_grad of a
  /// parameter, is not as captured: nothing was run, and steps go on when it is changed back.
  /// kPlanMismatch also when the closures do something else than when they were captured: the
  /// training is over, with the state of the step before.
  template <typename... Inputs>
  at::Tensor operator()(const Inputs&... inputs) {
    return step({inputs...});
  }
  /// The two halves of it, for who does not need the loss before the next step begins: enqueues one
  /// step and returns its number in this session, from 0, without waiting for it. Throws as
  /// operator().
  template <typename... Inputs>
  int64_t enqueue(const Inputs&... inputs) {
    return enqueueStep({inputs...});
  }
  /// The loss of one of the last two steps enqueued (the last one, when the step after it was
  /// refused), on the CPU; waits for it. Throws Failure: kInvalidArgument for others.
  at::Tensor loss(int64_t step);

  /// Waits for everything enqueued. Call it before using or seeding the CPU's generator between one
  /// `enqueue` and the next.
  void finish();

  /// Between two steps: gives the device memory of the plan back, to generate or to evaluate in
  /// another program, while host memory holds what is on the device. Returns what was copied.
  /// Before `restore` everything else but finish, loss and stepsDone throws kInvalidArgument. On a
  /// GPU that host memory is pinned, and stays pinned for the next release. Throws Failure:
  /// kOutOfDeviceMemory when the host has no room; nothing was released then.
  runtime::ArenaCopy release();
  /// Gets the memory again; the next steps have the bits that they would have had. Throws Failure:
  /// kOutOfDeviceMemory when something else has it: nothing is lost, and it can be tried again.
  runtime::ArenaCopy restore();

  /// Steps enqueued since the training began; those before a checkpoint that was loaded count, a
  /// refused one does not.
  int64_t stepsDone() const;

  /// Calls `look` while the captured module holds what the training has come to after every step
  /// enqueued, and returns what it returns: to evaluate between two steps.
  ///   double loss = runner.read([&] { model->eval(); return evaluate(model); });
  /// Parameters, buffers and tensors from outside that the step writes are copies on the CPU.
  /// Nothing that `look` does to them counts: values (statistics of batch norm in train mode, too),
  /// gradients, requires_grad, train() and eval() and libtorch's generator are put back, and the
  /// steps that follow have the bits that they would have had. Optimizer state stays without
  /// memory. What `look` throws arrives here, after all was put back. Throws Failure:
  /// kInvalidArgument after storeTo, and for what `look` asks of this runner.
  template <typename Look>
  std::invoke_result_t<Look&> read(Look look) {
    using Result = std::invoke_result_t<Look&>;
    if constexpr (std::is_void_v<Result>) {
      readState([&] { look(); });
    } else {
      std::optional<Result> result;
      readState([&] { result.emplace(look()); });
      return std::move(*result);
    }
  }

  /// A checkpoint (runtime/checkpoint/checkpoint.h).
  void save(const std::string& folder);
  runtime::ResumePoint load(const std::string& folder);
  /// Gives the values to the captured module and its optimizer; this runner takes no more steps.
  void storeTo(const ModulePointer& module);

  runtime::Runner& internals() { return *runner_; }

 private:
  Runner(Plan plan, Step step, std::unique_ptr<runtime::Runner> runner)
      : plan_(std::move(plan)), step_(std::move(step)), runner_(std::move(runner)) {}
  static Runner createAlike(const Plan& plan, const Step& step, const RunOptions& options);
  at::Tensor step(const std::vector<at::Tensor>& inputs);
  int64_t enqueueStep(const std::vector<at::Tensor>& inputs);
  void readState(const std::function<void()>& look);

  Plan plan_;
  Step step_;
  std::unique_ptr<runtime::Runner> runner_;
};

}  // namespace stowage

#endif  // STOWAGE_RUNTIME_SESSION_H_
