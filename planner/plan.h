// SPDX-License-Identifier: Apache-2.0
//
// The planner's front door: a budget in, the fastest known schedule that fits out, or a useful
// "no". Plans come from a frontier that does not depend on the budget asked for
// (planner/frontier.h), so more budget never makes the predicted time worse, for any pair of
// budgets.
#ifndef STOWAGE_PLANNER_PLAN_H_
#define STOWAGE_PLANNER_PLAN_H_

#include <vector>

#include "ir/error.h"
#include "planner/problem.h"
#include "planner/timetable.h"

namespace stowage::planner {

/// One entry of the frontier: needs `height` bytes, takes `time`.
struct FrontierPoint {
  Bytes height;
  Nanoseconds time;
  Decisions decisions;
};

struct PlanResult {
  Timetable timetable;
  Nanoseconds bound;        // lower bound at this budget (planner/lower_bound.h)
  Nanoseconds computeTime;  // sum of the original nodes: the time with unlimited memory
  Bytes keepAllHeight;      // bytes the step needs when nothing is moved or recomputed
  bool planNeeded = true;   // false: everything fits anyway, no copies, no clones
};

/// Errors: kInfeasible with the smallest budget that works and what holds the peak there; also for
/// the host.
ir::Expected<PlanResult> plan(const Problem& problem, Bytes budget);

/// The whole frontier, by falling height. Points are strictly faster as height grows.
ir::Expected<std::vector<FrontierPoint>> computeFrontier(const Problem& problem);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_PLAN_H_
