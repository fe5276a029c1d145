// SPDX-License-Identifier: Apache-2.0
//
// A schedule in words that help: what is on the device at its fullest moment, where compute waits
// and for what, what each would cost to change; and for one storage, what happens to it in every
// gap, why and at what price. Everything is read from the schedule itself with the times of its
// costs, so an edited plan is explained as it is. Not for proofs: that is ir/verify/verify.h.
#ifndef STOWAGE_PLANNER_REPORT_EXPLAIN_PLAN_H_
#define STOWAGE_PLANNER_REPORT_EXPLAIN_PLAN_H_

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "planner/evaluate/timeline.h"

namespace stowage::planner {

/// Compute does nothing for `time` before `node`, because `storage` is on its way.
struct StallPlace {
  ir::NodeId node;
  ir::StorageId storage;
  bool isOut = false;     // on its way to the host: its bytes are needed
  bool isByDisk = false;  // what is on its way waited for a disk until the end
  bool isRanks = false;   // on its way from, or to, other ranks
  Nanoseconds time;
};

/// Storages of one kind that are copied, and how much shorter the same schedule is at most if their
/// copies took no time.
struct CopiedGroup {
  std::string kind;  // "weights", "optimizer states", "gradients", "activations"
  int64_t storages = 0;
  Bytes bytes;  // of all of them, once
  Nanoseconds atMost;
};

struct PlanExplanation {
  ir::NodeId peakNode;
  Bytes peakBytes;  // at once there, temporaries and reserved regions included
  Bytes arenaPeak;  // highest byte of the device arena that is used: what the budget must hold
  std::vector<ir::Infeasible::Holder> holders;  // largest first
  std::vector<StallPlace> stalls;               // longest first
  std::vector<CopiedGroup> copied;              // that would save most first
  Nanoseconds stepTime;
  Nanoseconds waiting;        // all stalls together
  Nanoseconds recomputeTime;  // all recomputes together
  Nanoseconds launchWaits;    // compute waits for the launch thread
  Nanoseconds outBusy;        // of each link per step
  Nanoseconds inBusy;
  Nanoseconds hostBusy;      // with updates that run there
  Nanoseconds ranksBusy;     // with collectives
  Nanoseconds diskReadBusy;  // of each direction of a disk per step
  Nanoseconds diskWriteBusy;
};

struct GapStory {
  int64_t begin = 0;  // of the gap, as a plan's decisions number it
  int64_t end = 0;    // at least the number of nodes: in the next step
  ir::NodeId before;  // the node that touches it before the gap, and the one after
  ir::NodeId after;
  bool nextStep = false;  // that one is in the next step
  ir::GapAction action = ir::GapAction::kKeep;
  std::string why;
  Nanoseconds away;           // node times between
  Nanoseconds copyTime;       // both ways, as far as it is copied; what copies would take for kKeep
  Nanoseconds recomputeTime;  // of the nodes that make it; 0: not recomputed
};

struct StorageStory {
  ir::StorageId storage;
  Bytes bytes;  // rounded
  std::vector<GapStory> gaps;
  Nanoseconds waiting;  // that it causes per step
};

struct ExplainInput {
  const ir::Graph& graph;
  const ir::Schedule& schedule;  // synced
  const ir::NodeCosts& costs;
  int64_t alignBytes = 512;
};

PlanExplanation explainPlan(const ExplainInput& input);

/// Errors: kInvalidArgument for a name that no storage has.
ir::Expected<StorageStory> explainStorage(const ExplainInput& input, const std::string& name);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_REPORT_EXPLAIN_PLAN_H_
