// SPDX-License-Identifier: Apache-2.0
//
// When every command of a schedule runs, given what nodes cost and links carry: streams are first
// in, first out. A command starts when its stream's predecessor and all its waits are finished and
// the launch thread has enqueued it.
// Where a CUDA graph begins or ends all streams meet. Steps follow each other until the period
// repeats. This defines a plan's predicted time; the fake device follows the same rules on a
// virtual clock.
#ifndef STOWAGE_PLANNER_EVALUATE_TIMELINE_H_
#define STOWAGE_PLANNER_EVALUATE_TIMELINE_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <array>
#include <vector>

#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::planner {

struct Timeline {
  std::vector<Nanoseconds>
      start;  // by command, in the last simulated step, relative to that step's begin
  std::vector<Nanoseconds> end;
  std::vector<Nanoseconds> enqueued;  // likewise; empty: without launch overhead
  Nanoseconds stepTime;               // period of the steady state
  Nanoseconds firstStep;  // the first step's duration (starts with every prev satisfied)
  std::array<Nanoseconds, ir::kStreamCount> busy{};
};

/// `schedule` must be at level kSynced. Copies last latency + rounded bytes / bandwidth of their
/// engine.
Timeline computeTimeline(const ir::Graph& graph, const ir::Schedule& schedule,
                         const ir::NodeCosts& costs, int64_t alignBytes);

/// The same, where copies of some storages take no time: what they cost the step.
Timeline computeTimelineWithout(const ir::Graph& graph, const ir::Schedule& schedule,
                                const ir::NodeCosts& costs, int64_t alignBytes,
                                llvm::function_ref<bool(ir::StorageId)> isFree);

/// With durations from elsewhere, measured ones for example, by command; without launch overhead.
Timeline computeTimeline(const ir::Graph& graph, const ir::Schedule& schedule,
                         llvm::ArrayRef<Nanoseconds> durations);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_TIMELINE_H_
