// SPDX-License-Identifier: Apache-2.0
//
// A schedule prepared for the launch thread: per command the events to wait for and to record,
// where inputs enter and outputs leave, before which command the step scalars must be there. Made
// once per plan; the executor's loop only walks over it.
// Events: a command gets one if another stream waits for it, if the host does (users of inputs,
// deliveries of outputs), or if it is the last of its stream in the step. Waits on the same stream
// are dropped: its order implies them.
// The schedule must have passed checkExecutable (runtime/executor/check_executable.h).
#ifndef STOWAGE_RUNTIME_EXECUTOR_ENQUEUE_PLAN_H_
#define STOWAGE_RUNTIME_EXECUTOR_ENQUEUE_PLAN_H_

#include <llvm/ADT/SmallVector.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::runtime {

struct EnqueueRecord {
  ir::CommandKind kind = ir::CommandKind::kRun;
  ir::Stream stream = ir::Stream::kCompute;
  int32_t event = -1;       // recorded after the command; -1: none
  int32_t output = -1;      // index of the output that leaves after it; -1: none
  bool updates = false;     // left out of a step without updates
  bool isDeferred = false;  // an update of the step before
  // Of copies: do they copy anything in a step before which nothing is pending, and where only what
  // is pending runs?
  bool copiesWithoutPending = true;
  bool copiesPending = true;
  llvm::SmallVector<int32_t, 2> waitFor;   // events of this step
  llvm::SmallVector<int32_t, 1> waitPrev;  // events of the step before
};

/// The last command of a stream in a step.
struct StreamEnd {
  ir::Stream stream = ir::Stream::kCompute;
  int32_t event = -1;
};

/// Bytes that the caller puts in place before a step.
struct InputPort {
  ir::StorageId storage;
  Bytes bytes;
  int64_t hostOffset = 0;
  llvm::SmallVector<int32_t, 2> users;  // events after which the bytes may be replaced
  std::optional<ir::Stream> copiedOn;   // all users are copies on this stream
};

/// Bytes that the caller gets after a step: from the last host residency that the step writes.
struct OutputPort {
  ir::StorageId storage;
  Bytes bytes;
  ir::CommandId writer;  // invalid: the step does not write it, the boundary's bytes are delivered
  int64_t hostOffset = 0;
  int32_t event = -1;
};

struct EnqueuePlan {
  std::vector<EnqueueRecord> records;  // by command
  int32_t eventCount = 0;
  std::vector<StreamEnd> stepEnd;   // of every stream that the schedule uses
  std::vector<InputPort> inputs;    // in order of storage
  std::vector<OutputPort> outputs;  // in order of storage
  /// The first command that updates the model or reads a step scalar of its own step; the number of
  /// commands if there is none.
  size_t firstUpdate = 0;
  bool needsScalars = false;
  bool defersUpdates = false;
  /// A step whose scalars do not come can be ended by leaving out the updates and the copies of
  /// what they make: all state stays as it was. Not where they overwrite state whose old bytes are
  /// not kept until then.
  bool canEndWithoutUpdates = true;
  /// The loss writes state that the step sets to one value at its end (gradients kept at zero): it
  /// is as after a step of the plan then, which need not be as before the first.
  bool emptiesState = false;
  /// State that is written outside of the updates (running statistics), in order of storage; not
  /// what the step empties.
  std::vector<ir::StorageId> writtenByLoss;

  /// Position among `outputs`; -1: it is none.
  int32_t findOutput(ir::StorageId storage) const;
};

/// Errors: kInvalidIr when an output never reaches the host.
ir::Expected<EnqueuePlan> makeEnqueuePlan(const ir::Graph& graph, const ir::Schedule& schedule);

/// Does the node read a number that changes from step to step?
bool usesStepScalars(const ir::Node& node);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_ENQUEUE_PLAN_H_
