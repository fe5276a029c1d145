// SPDX-License-Identifier: Apache-2.0
//
// A plan as the search holds it: an action per gap and what evaluation said about it. Small enough
// to keep hundreds; its timetable is evaluated anew when it becomes an answer.
#ifndef STOWAGE_PLANNER_SEARCH_KNOWN_PLAN_H_
#define STOWAGE_PLANNER_SEARCH_KNOWN_PLAN_H_

#include <optional>
#include <vector>

#include "planner/evaluate/evaluation.h"

namespace stowage::planner {

struct KnownPlan {
  int64_t peak = 0;  // of the device arena
  int64_t hostPeak = 0;
  int64_t diskPeak = 0;  // 0: nothing goes to disk
  int64_t time = 0;
  int64_t moved = 0;          // bytes copied in a step, both ways
  int64_t prefetchLimit = 0;  // bytes that prefetches may fill: given to evaluateActions
  Actions actions;
};

/// What a search can use; what is beyond is not evaluated to its end.
struct Useful {
  int64_t peak = INT64_MAX;  // at most
  int64_t time = INT64_MAX;  // less than
};

struct Tried {
  std::optional<KnownPlan> plan;  // nothing if the actions are not possible or of no use
  int64_t peak = 0;               // of the plan, or a lower bound of it if that is already too high
  bool isTooSlow = false;
  std::vector<StallAt> stalls;  // of the plan
};

Tried tryActions(const GapTable& table, Actions actions, int64_t prefetchLimit,
                 const Useful& useful);

/// Bytes at each node, reserved regions included: the highest of the node and the recomputes before
/// it, when what is prefetched arrives at its deadline. Empty if the actions are not possible.
std::vector<int64_t> computeNodeLoads(const GapTable& table, const Actions& actions);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_KNOWN_PLAN_H_
