// SPDX-License-Identifier: Apache-2.0
//
// A plan as the search holds it: an action per gap and what evaluation said about it. Small enough
// to keep hundreds; its timetable is made again when it becomes an answer.
#ifndef STOWAGE_PLANNER_SEARCH_KNOWN_PLAN_H_
#define STOWAGE_PLANNER_SEARCH_KNOWN_PLAN_H_

#include <optional>
#include <vector>

#include "planner/evaluate/evaluation.h"

namespace stowage::planner {

struct KnownPlan {
  int64_t height = 0;
  int64_t hostHeight = 0;
  int64_t time = 0;
  int64_t moved = 0;     // bytes copied in a step, both ways
  int64_t prefetch = 0;  // bytes that prefetches may fill: given to evaluateActions
  Actions actions;
};

/// What a search can use; what is beyond is not evaluated to its end.
struct Useful {
  int64_t height = INT64_MAX;  // at most
  int64_t time = INT64_MAX;    // less than
};

struct Tried {
  std::optional<KnownPlan> plan;  // nothing if the actions are not possible or of no use
  int64_t height = 0;             // of the plan; what it would be at least if it is too high
  bool isTooSlow = false;
};

Tried tryActions(const GapTable& table, Actions actions, int64_t prefetch, const Useful& useful);

/// Bytes at each node, reserved regions included: the highest of the node and the recomputes before
/// it, when what is prefetched arrives at its deadline. Empty if the actions are not possible.
std::vector<int64_t> computeNodeLoads(const GapTable& table, const Actions& actions);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_KNOWN_PLAN_H_
