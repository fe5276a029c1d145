// SPDX-License-Identifier: Apache-2.0
//
// What a Runner keeps. Private to runner.cpp (steps), runner_values.cpp, runner_state.cpp (files,
// memory), runner_read.cpp, runner_turns.cpp (several runners on one state), runner_release.cpp and
// runner_ranks.cpp (several processes).
#ifndef STOWAGE_RUNTIME_RUNNER_RUNNER_IMPL_H_
#define STOWAGE_RUNTIME_RUNNER_RUNNER_IMPL_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/state_io.h"
#include "runtime/executor/device.h"
#include "runtime/executor/executor.h"
#include "runtime/runner/agreed_feed.h"
#include "runtime/runner/retrace_feed.h"
#include "runtime/runner/runner.h"
#include "runtime/runner/shared_state.h"
#include "runtime/runner/step_match.h"
#include "runtime/torch/rng_keeper.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {

inline llvm::ArrayRef<uint8_t> bytesOf(const at::Tensor& tensor) {
  return {static_cast<const uint8_t*>(tensor.data_ptr()), tensor.nbytes()};
}
/// Of graph and schedule.
std::string fingerprintOf(const RunnablePlan& plan);

struct Runner::Impl {
  RunnableStep& captured;
  RunnablePlan plan;
  StepMatch match;  // ids below are the plan's; the captured step's say so
  std::shared_ptr<Device> device;
  std::unique_ptr<RetraceFeed> ownFeed;
  std::unique_ptr<AgreedFeed> agreedFeed;  // with ranks
  std::unique_ptr<Executor> executor;
  const TrainingRanks* ranks = nullptr;
  uint64_t firstValues = 0;           // a digest of what all ranks begin with
  std::vector<bool> rankStates;       // by storage: does each rank have one of its own?
  std::optional<StateFiles> weights;  // while the state is filled
  bool weightsMayLack = false;
  std::map<ir::StorageId, at::Tensor> givenUnused;  // by captured id: what no command touches
  std::function<void(int64_t steps)> advance;
  std::function<bool()> stop;
  int64_t stepsBefore = 0;                   // those of the checkpoint that was loaded
  std::map<std::string, std::string> notes;  // for checkpoints
  /// A recompute that draws random numbers sets the generator to an earlier state for a while: a
  /// GPU's when it is enqueued, the CPU's when it runs.
  bool drawsOnCpu = false;
  bool begun = false;          // took a step, or a checkpoint
  bool comparesFirst = false;  // the next step
  bool over = false;
  struct Reading {
    std::unique_ptr<LentState> lent;
    std::vector<uint8_t> generator;  // of the step's device
    RngRestore ofCpu;                // also of a step on a GPU: who reads has the module on the CPU
  };
  std::optional<Reading> reading;           // between beginRead and endRead
  std::optional<ir::PlanError> notPutBack;  // what `read` or another's turn could not undo

  // Several runners on one state: of all,
  Impl* main = nullptr;  // of a further one
  size_t planNumber = 0;
  std::vector<std::pair<ir::StorageId, at::Tensor>> ownConstants;  // by planned storage
  // and of the main one.
  std::optional<SharedState> shared;  // from the first further one on
  std::vector<Impl*> furthers;
  Impl* active = nullptr;  // whose turn it is
  bool released = false;   // the device arena

  Impl& home();
  ir::StorageId mainStorageOf(ir::StorageId planned) const;
  PlanPlaces places();
  ir::Error join(Impl& mainRunner);
  ir::Error share();
  /// The turn of this runner begins, if it is another's. Errors: kInvalidArgument while the device
  /// arena is released.
  ir::Error enter();
  int64_t stepsTrained() const;
  void part();

  ir::Error open(const RunnerOptions& options);
  /// runner_ranks.cpp. Is the plan for these ranks, and have all of them the same one?
  ir::Error checkRanks(const RunnerOptions& options) const;
  /// A storage's bytes, whole, from this rank's part of them.
  ir::Expected<at::Tensor> joinedValue(ir::StorageId storage, const at::Tensor& own) const;
  /// Its generator goes on where it was, or begins anew where the checkpoint's training had no such
  /// rank.
  ir::Error restoreGenerator(const Checkpoint& checkpoint) const;
  CheckedSteps checkedSteps(const RunnerOptions& options) const;
  ir::Error checkReads() const;
  /// Of the step's generator: the step to be enqueued may be refused. Nothing where it cannot.
  ir::Expected<std::optional<std::vector<uint8_t>>> generatorBefore();
  ir::Error openDevice(const RunnerOptions& options);
  ir::Expected<std::unique_ptr<Device>> openCpu(const RunnerOptions& options) const;
  ir::Expected<std::unique_ptr<Device>> openGpu(const RunnerOptions& options) const;
  ir::Error openWeights(const std::vector<std::string>& paths);
  ir::Error fillState();
  ir::Error readWeights();
  ir::Error readUnusedWeights();
  bool comesFromFile(const ir::Storage& storage) const;
  /// All of its bytes; of a shard, this rank's are put.
  ir::Error putState(ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes);
  ir::Expected<at::Tensor> currentValue(ir::StorageId storage);
  /// By a captured step's id; also of what the plan does without.
  ir::Expected<at::Tensor> capturedValue(ir::StorageId captured);
  ir::Expected<at::Tensor> firstValueOf(ir::StorageId captured);
  ir::Error begin();
  /// Brings the host's numbers to where they are after so many steps.
  ir::Error catchUp(int64_t steps);
  ir::Error checkInputs(llvm::ArrayRef<at::Tensor> inputs) const;
  ir::Error checkLayouts(llvm::ArrayRef<at::Tensor> inputs) const;
  llvm::ArrayRef<uint8_t> inputBytes(const ir::Value& value, const at::Tensor& laidOut) const;
  ir::Expected<at::Tensor> report(int64_t step, ir::ValueId captured);
  const ir::BoundaryEntry* findBoundary(ir::StorageId storage) const;
  ir::Error overError() const;
  /// runner_read.cpp. May the runner be called at all, and may the training go on?
  ir::Error checkNotRead() const;
  ir::Error checkOpen() const;
  /// runner_release.cpp. Is the device arena there?
  ir::Error checkNotReleased();
  /// Bytes of the device arena that hold state: of a main runner, whose turn it is.
  std::vector<ir::ByteRange> stateOnDevice() const;
  /// Whose generator the step's random numbers come from.
  c10::DeviceType generatorDevice() const { return toDevice(plan.target.device).type(); }
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUNNER_RUNNER_IMPL_H_
