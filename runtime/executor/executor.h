// SPDX-License-Identifier: Apache-2.0
//
// Runs the steps of one plan on a device. Decides nothing: one thread enqueues every command in the
// schedule's order; streams, waits and places are the schedule's. The planner is not needed.
//
// Deferred completion: enqueueStep returns when the step is enqueued, while its work may still be
// under way. Step s + 1 may be enqueued then, and its first commands run beside the tail of step s
// as far as the schedule's `prev` allows (a joined schedule: not at all). The thread waits for step
// s before it enqueues step s + 2. Inputs are copied into their host residencies when a step is
// enqueued, after the readers of the step before are done. Outputs are kept for two steps: those of
// step s are there until step s + 2 is enqueued. Several plans may take turns on a device when
// their boundaries are equal; the change of plans waits for all streams. On the first step, and
// after a change of plans, every `prev` counts as satisfied.
//
// Deferred updates (ir::Phase::kDeferred) belong to the step before and take its step scalars. They
// are left out where nothing is pending: in the first step and after `finish`. finish() runs what
// is pending: the schedule once more, without the launches that are not deferred and the copies of
// what these would have made.
// After an error the executor is stopped.
// A step is not undone: the state since the last save is lost, and every later call returns the
// same error. One exception: the step scalars do not come because the optimizer did something else
// than at capture. Then the step ends without its updates where that is possible. No other step can
// be enqueued, but the state of the step before can be read (without buffers that forward changes).
// Where the feed comes first (ScalarFeed::comesFirst), such a step is refused before anything of it
// is enqueued, and the next one may follow.
// One thread uses an executor at a time.
#ifndef STOWAGE_RUNTIME_EXECUTOR_EXECUTOR_H_
#define STOWAGE_RUNTIME_EXECUTOR_EXECUTOR_H_

#include <llvm/ADT/ArrayRef.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ir/base/error.h"
#include "runtime/executor/device.h"
#include "runtime/executor/enqueue_plan.h"
#include "runtime/executor/loss_state.h"
#include "runtime/executor/scalar_feed.h"

namespace stowage::runtime {

/// A plan and what it needs. All outlive the executor.
struct PlanSource {
  const ir::Graph& graph;
  const ir::Schedule& schedule;
  const ir::Target& target;
  const ir::NodeCosts* costs = nullptr;  // measured; null: what devices assume without
  ScalarFeed* feed = nullptr;            // may be null when the graph has no step scalars
};

/// The bytes of one input for one step.
struct InputBytes {
  ir::StorageId storage;
  llvm::ArrayRef<uint8_t> bytes;
};

class Executor {
 public:
  /// Errors: what checkExecutable, makeEnqueuePlan and Device::load find; kInvalidArgument when
  /// step scalars have no feed.
  static ir::Expected<std::unique_ptr<Executor>> create(Device& device, const PlanSource& source);
  ~Executor();

  /// Enqueues one step; returns its number, from 0. `inputs`: every input of the graph once, in any
  /// order; the bytes are not used after the call. The state must be in place (boundary_state.h).
  ir::Expected<int64_t> enqueueStep(llvm::ArrayRef<InputBytes> inputs);
  /// Waits for an output of one of the last two steps enqueued; of the last one, when the step
  /// after it was refused. Valid until two more are enqueued.
  ir::Expected<llvm::ArrayRef<uint8_t>> output(int64_t step, ir::StorageId storage);
  /// Waits for everything enqueued.
  ir::Error wait();
  /// Waits for everything enqueued, deferred updates included: the boundary's places hold the state
  /// after the last step. To run what is pending takes about as long as the copies of a step.
  ir::Error finish();

  int64_t stepsEnqueued() const { return nextStep_; }
  /// How often a segment was recorded by the device; to record takes about as long as to enqueue.
  int64_t recordings() const { return recordings_; }
  /// Whether what the boundary's places hold is the state of a whole number of steps.
  bool stateIsWhole() const { return !stopped_ || endedWithoutUpdates_; }
  /// Can no step follow?
  bool isStopped() const { return stopped_.has_value(); }
  /// Was the last step refused, so that no update of it was made?
  bool endedWithoutUpdates() const { return endedWithoutUpdates_; }
  /// Is an output on the host before the feed is joined, so that the feed can be told its bytes?
  bool comesBeforeUpdates(ir::StorageId output) const;
  const PlanSource& source() const { return source_; }
  Device& device() { return device_; }
  Program& program() { return *program_; }

 private:
  Executor(Device& device, const PlanSource& source, EnqueuePlan plan,
           std::unique_ptr<Program> program);

  /// Which launches a pass over the schedule makes.
  enum class Launches : uint8_t {
    kAll,
    kNotDeferred,  // nothing is pending
    kDeferred      // what is pending, and no step
  };

  ir::Error enqueue(llvm::ArrayRef<InputBytes> inputs);
  ir::Error runPending();
  /// By which the events of a step are told from those of the step before.
  int64_t passOf(int64_t step) const { return step + pendingRuns_; }
  bool isLeftOut(const EnqueueRecord& record) const;
  ir::Error startTurn();
  ir::Error checkInputs(llvm::ArrayRef<InputBytes> inputs) const;
  ir::Error bindInputs(llvm::ArrayRef<InputBytes> inputs);
  ir::Error bindInput(const InputPort& port, llvm::ArrayRef<uint8_t> bytes);
  ir::Error readUnwrittenOutputs();
  ir::Error enqueueArrivals(llvm::ArrayRef<InputBytes> inputs);
  ir::Error joinStreams();
  ir::Error enqueueCommands();
  ir::Error enqueueSegment(size_t end);
  ir::Error deliverAfterSegment(size_t end);
  ir::Error enqueueRange(size_t begin, size_t end);
  ir::Error enqueueCommand(ir::CommandId id, bool delivers);
  ir::Error deliver(const EnqueueRecord& record);
  ir::Error enqueueWaits(const EnqueueRecord& record);
  ir::Error joinFeed(size_t enqueued);
  ir::Error tellFeed(size_t enqueued);
  bool canEndWithoutUpdates() const;
  ir::Error joinOrLeaveOut(size_t enqueued);
  ir::Error stop(ir::Error error);
  ir::Error endWithoutUpdates();
  ir::Error checkRunning() const;

  Device& device_;
  PlanSource source_;
  EnqueuePlan plan_;
  std::unique_ptr<Program> program_;
  int64_t nextStep_ = 0;
  int64_t firstStepOfTurn_ = 0;  // its `prev` are satisfied
  int64_t pendingRuns_ = 0;      // passes that were no steps
  bool hasPending_ = false;
  Launches launches_ = Launches::kAll;  // in this pass
  std::vector<ScalarValue> pendingScalars_;
  int64_t recordings_ = 0;
  llvm::ArrayRef<ScalarValue> scalars_;
  std::vector<ScalarValue> capturedScalars_;  // stand in where the step's own do not come
  std::vector<int32_t> wantedOutputs_;        // by what the feed wants; -1: no output
  LossState lossState_;
  /// By parity of the step, then by output.
  std::array<std::vector<std::vector<uint8_t>>, 2> outputs_;
  /// By parity of the step, then by input: where they arrive while the step is under way.
  std::array<std::vector<std::vector<uint8_t>>, 2> arrivals_;
  std::optional<ir::PlanError> stopped_;
  std::optional<ir::PlanError> refusal_;  // why this step's updates are left out
  std::optional<ir::PlanError> unbegun_;  // why nothing of this step was enqueued
  bool isJoined_ = false;                 // the feed, in this step
  bool enqueuedBeforeRefusal_ = false;    // commands of the refused step ran
  bool endedWithoutUpdates_ = false;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_EXECUTOR_H_
