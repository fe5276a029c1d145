// SPDX-License-Identifier: Apache-2.0
//
// Runs the steps of a captured training step by its plan: owns device, executor and state; takes
// the first values from the capture (live module, replayed construction, created optimizer state);
// feeds the step scalars; hands out what the step reports. The planner takes no part. Ownership:
// the step, graph, schedule and target outlive the runner. While it lives, the state is in
// its arenas; storeTo gives it to the module again; save and load keep it in files. Not here:
// planning, plan files.
// Several plans may work on one state (another shape of a batch, an evaluation): runners of further
// steps, made with `RunnerOptions::main`. They take turns by themselves: whichever is called gets
// the state first. save, load, read, value, putValue and storeTo are the main one's.
#ifndef STOWAGE_RUNTIME_RUNNER_RUNNER_H_
#define STOWAGE_RUNTIME_RUNNER_RUNNER_H_

#include <ATen/core/Tensor.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/costs/step_times.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "runtime/executor/device.h"
#include "runtime/ranks/training_ranks.h"
#include "runtime/runner/runnable_step.h"

namespace stowage::runtime {

/// A plan as the runner needs it.
struct RunnablePlan {
  const ir::Graph& graph;        // in the plan's order
  const ir::Schedule& schedule;  // level kSynced, verified by the caller
  const ir::Target& target;
  const ir::NodeCosts* costs = nullptr;  // measured here; null: measured before the first step
};

class Runner;

struct RunnerOptions {
  /// CPU: copies take as long as over these links; none: as fast as memory is.
  std::optional<ir::LinkModel> links;
  /// Where step scalars come from instead of re-tracing the step's own update; outlives the runner.
  ScalarFeed* feed = nullptr;
  /// Safetensors files with every parameter and buffer; else their first values are the capture's.
  std::vector<std::string> weights;
  /// A further runner: `captured` is a further step of that runner's, whose device it uses and
  /// whose state it works on. `weights` and the like are none of its own. The other outlives it.
  Runner* main = nullptr;
  /// Addresses of host memory that further runners may come to use.
  Bytes mostHostBytes;
  /// Where the plan's disk arena is made, if it has one; the bytes are the plan's.
  std::string diskFolder;
  Bytes mostDiskBytes;      // reserved there, for further runners
  bool verifyDisk = false;  // checksums of what is written there, compared when it is read
  /// The files need not hold all: the rest is the capture's. What nothing asks for is no error.
  bool weightsMayLack = false;
  /// CUDA: called while host memory is pinned.
  std::function<void(Bytes done, Bytes all)> pinning;
  /// Kept in every checkpoint, not interpreted.
  std::map<std::string, std::string> notes;
  /// Steps compared with the code that the step was captured from: 1: each, the default; n > 1: the
  /// first 16 and every n-th; 0: none. Code of `loss` runs in compared steps alone, so that what it
  /// counts falls behind with n > 1. A step whose loss reads values with item() is compared each
  /// time, unless none is.
  std::optional<int64_t> checkEvery;
  /// Brings what `update` counts on the host (optimizers, schedulers) on by so many steps at once,
  /// for `load`. Learning rates are the checkpoint's. Whoever gives it knows all that the closures
  /// count.
  std::function<void(int64_t steps)> advance;
  /// Asked between two steps that `load` traces: true ends it with kEnvironment.
  std::function<bool()> stop;
  /// The ranks that the plan's graph is for; outlives the runner. All make the same calls of their
  /// runners in the same order, each with inputs of its own. Null: a plan for one process.
  const TrainingRanks* ranks = nullptr;
};

/// Where a checkpoint was taken.
struct ResumePoint {
  int64_t steps = 0;
  int64_t dataPosition = 0;
  bool samePlan = false;  // as the one that runs now; another one gives the same bytes
};

class Runner {
 public:
  /// Errors: kPlanMismatch (graph, target, threads, library versions; weights, with a note per
  /// tensor; another number of ranks), kEnvironment (ranks with other plans or first values than
  /// rank 0, or that are gone), kOutOfDeviceMemory, kUnsupported, kIo and kParse with the file.
  static ir::Expected<std::unique_ptr<Runner>> create(RunnableStep& captured,
                                                      const RunnablePlan& plan,
                                                      RunnerOptions options = {});
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs one step on `inputs` (in the capture's order; shapes and dtypes as captured) and returns
  /// what `loss` reported: tensors of their own, on the CPU. The rest of the step may still run,
  /// but for one that draws from the CPU's generator, which is the caller's again. Errors:
  /// kInvalidArgument for inputs, kPlanMismatch when the step is no longer the captured one: the
  /// state is that of the last step.
  ir::Expected<std::vector<at::Tensor>> step(llvm::ArrayRef<at::Tensor> inputs);
  /// The two halves of `step`, for callers that need the reports only later. Enqueues the step and
  /// returns its number among this runner's, from 0, without waiting for it. While a step that
  /// draws from the CPU's generator is under way, call `finish` before using or seeding that
  /// generator.
  ir::Expected<int64_t> enqueue(llvm::ArrayRef<at::Tensor> inputs);
  /// The next step is compared with its code before anything of it is enqueued: that takes longer,
  /// and a step that differs is refused alone (as all are whose code asks for other values of the
  /// inputs than at capture). Not where the code reads values that the step computes.
  void compareFirst();
  /// True after a step that was refused, or failed, so that none can follow.
  bool isStopped() const;
  /// Is the state that of no whole number of steps, because something of one failed?
  bool isLost() const;
  /// What `loss` reported in one of the last two steps enqueued (the last one, when the step after
  /// it was refused); waits for it. Errors: kInvalidArgument for others.
  ir::Expected<std::vector<at::Tensor>> reports(int64_t step);

  /// Waits for everything enqueued.
  ir::Error finish();
  /// Waits for what other runners of the same state have enqueued, and gets the state; module and
  /// optimizers hold this one's tensors. Every call that needs it does so by itself.
  ir::Error takeTurn();

  /// Gives the device arena's memory back, for other programs, until `restore`; between steps. All
  /// state that is on the device is held in host memory meanwhile. Waits for everything enqueued by
  /// all runners that share the device, deferred updates included. Call the main runner's. Until
  /// `restore` only reports, finish and questions are answered; everything else is refused with
  /// kInvalidArgument. Errors: those of Device::release.
  ir::Expected<ArenaCopy> release();
  /// Gets the memory again, at the same addresses; the steps that follow have the bits that they
  /// would have had. Errors: kOutOfDeviceMemory when something else has the memory: nothing is
  /// lost, and it can be tried again.
  ir::Expected<ArenaCopy> restore();
  bool isReleased() const;

  /// Delivers the bytes of all state that the plan touches, in order of storage, after everything
  /// enqueued is done. Here and below, a shard is delivered as the tensor that all ranks have of
  /// it, so all of them call it.
  using StateVisitor =
      llvm::function_ref<ir::Error(const ir::Storage&, llvm::ArrayRef<uint8_t> bytes)>;
  ir::Error visitState(StateVisitor visit);

  /// Calls `look` while the module holds, as copies, what the training has come to after everything
  /// enqueued; then module and generator are as before, whatever `look` did or threw. Errors:
  /// kInvalidArgument inside of `look` or after storeTo; kUnsupported where there is no module.
  ir::Error read(llvm::function_ref<void()> look);
  /// The two halves of it, for callers that have no function to give. `endRead` follows in any
  /// case; without `beginRead` it does nothing.
  ir::Error beginRead();
  ir::Error endRead();
  /// What a persistent storage of the captured step holds after everything enqueued: uint8 [n], on
  /// the CPU, of its own. Errors: kInvalidArgument after storeTo.
  ir::Expected<at::Tensor> value(ir::StorageId captured);
  /// Gives it other bytes, uint8 [n] on the CPU, for the steps to come. Errors: kInvalidArgument.
  ir::Error putValue(ir::StorageId captured, const at::Tensor& bytes);

  /// Kept in the checkpoints from now on, like `RunnerOptions::notes`.
  void keepNote(const std::string& key, std::string note);

  /// Gives the state back to the module and the optimizer. The runner takes no more steps.
  ir::Error storeTo();

  /// Writes a checkpoint (runtime/checkpoint/checkpoint.h) between two steps. `dataPosition`:
  /// batches used; -1: as many as steps. Errors: kIo.
  ir::Error save(const std::string& folder, int64_t dataPosition = -1);
  /// Goes on from a checkpoint, before the first step; then the learning rates are those of the
  /// checkpoint. The host's side is brought along by `advance`. Without it, `update` is traced as
  /// often as steps were done (about 1 ms each; 2^31 - 1 at most), because closures may count where
  /// nobody sees it, and running them is the only way to get there.
  /// Errors: kIo; kParse with the file, also for a generator's state that is none; kPlanMismatch
  /// with everything that does not fit, before the state is changed; or when the optimizer's step
  /// counts come out differently; kEnvironment when `stop` says so.
  ir::Expected<ResumePoint> load(const std::string& folder);

  /// Steps since the training began, those before a checkpoint included; of a main runner those of
  /// the further ones, too, that update.
  int64_t stepsDone() const;
  /// The device memory that ops were given since the runner was made (Device::servedPeak): what
  /// the plan's peak is a prediction of.
  std::optional<Bytes> peak() const;
  /// Highest byte of the device arena that anything wrote since then, or since the last `restore`,
  /// measured by a pattern (runtime/memory/canary.h): below the peak by what the highest tensor is
  /// padded or leaves unwritten.
  ir::Expected<Bytes> highWaterMark();
  /// Have all bytes that the plan never covers kept the pattern? Errors: kInternal, with the byte.
  ir::Error checkCanaries();
  /// The times of all commands are taken in the next `steps` steps; steps may be slower meanwhile.
  /// Errors: kEnvironment when the machine does not let them be taken.
  ir::Error takeTimes(int64_t steps);
  /// What was taken, by step. Waits for everything enqueued.
  ir::Expected<std::vector<ir::StepTimes>> takenTimes();
  /// What a thread beside takes to work out a step's scalars (RetraceFeed::typicalTime); nothing in
  /// the first steps, or where they come from a feed of the caller's.
  std::optional<Nanoseconds> scalarsTime() const;
  /// Allocations of libtorch's that the plan did not serve (Device::allocationsOutside).
  int64_t allocationsOutside() const;
  /// How often steps or parts of them were recorded (launch modes; a CUDA graph): once, and again
  /// for every step whose numbers are other ones.
  int64_t recordings() const;
  /// Device memory beside the arena; nothing where it cannot be told.
  std::optional<Bytes> memoryOutside() const;
  /// What collectives go by (Device::transport).
  std::string transport() const;
  /// Bytes of the device arena: the budget.
  Bytes arenaBytes() const;

 private:
  struct Impl;
  explicit Runner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUNNER_RUNNER_H_
