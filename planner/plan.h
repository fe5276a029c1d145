// SPDX-License-Identifier: Apache-2.0
//
// The planner's front door: a budget in, the fastest known schedule that fits out, or a useful
// infeasible error. Plans come from a frontier that does not depend on the budget asked for
// (planner/search/frontier.h), so more budget never makes the predicted time worse, for any pair of
// budgets.
#ifndef STOWAGE_PLANNER_PLAN_H_
#define STOWAGE_PLANNER_PLAN_H_

#include <memory>
#include <optional>
#include <vector>

#include "ir/base/error.h"
#include "planner/bound/lower_bound.h"
#include "planner/problem/problem.h"
#include "planner/problem/timetable.h"
#include "planner/search/search_watch.h"

namespace stowage::planner {

struct KnownPlan;  // planner/search/known_plan.h

/// One plan of the frontier: its peak on the device, and the time of a step.
struct FrontierPoint {
  Bytes peak;
  Nanoseconds time;
  Decisions decisions;
};

struct PlanResult {
  Timetable timetable;
  Nanoseconds bound;       // lower bound at this budget (planner/bound/lower_bound.h)
  Bytes keepAllPeak;       // bytes the step needs when nothing is moved or recomputed
  bool planNeeded = true;  // false: everything fits anyway, no copies, no recomputes
};

/// Plans one problem for any number of budgets and reuses what earlier calls computed. The answer
/// for a budget does not depend on earlier calls. Not for use by two threads at once.
class Planner {
 public:
  /// `problem` must outlive it. Errors: kInvalidArgument for pins that cannot be kept.
  static ir::Expected<Planner> make(const Problem& problem);
  Planner(Planner&&) noexcept;
  Planner& operator=(Planner&&) noexcept;
  ~Planner();

  /// `watch` may end searches and hears of what they find; null: nobody. It must outlive them.
  void setWatch(SearchWatch* watch);

  /// What no schedule of the problem can be below.
  LowerBound bound(Bytes budget) const;
  /// No answer to `budget` is faster. Takes little time; not a proof, as the bound is.
  Nanoseconds leastTime(Bytes budget);

  /// No plan for `budget` has less on the host. Takes little time. 0 where there is a disk.
  Bytes leastHost(Bytes budget) const;

  /// The time of a step that fits `budget`, found in less time than the answer, which is as fast
  /// at least; nothing if that finds none.
  std::optional<Nanoseconds> quickTime(Bytes budget);
  /// Errors: kInfeasible with the smallest budget that works and what holds the peak there; when
  /// host memory is what is missing, the smallest of that. Pins that are in the way are named.
  /// Only less than `hostOfUse` is looked for on the host: others are known to need no more.
  ir::Expected<PlanResult> plan(Bytes budget, Bytes hostOfUse = Bytes(INT64_MAX));
  /// The same answer if a step takes less than `slowest`, else nothing: looks for no other plans.
  ir::Expected<std::optional<PlanResult>> planFaster(Bytes budget, Nanoseconds slowest);
  /// The whole frontier, by falling peak. A point with a higher peak is strictly faster.
  std::vector<FrontierPoint> frontier();

 private:
  struct State;
  explicit Planner(std::unique_ptr<State> state);
  ir::Expected<PlanResult> answer(const KnownPlan& best, Bytes budget);
  std::unique_ptr<State> state_;
};

/// A planner for one budget.
ir::Expected<PlanResult> plan(const Problem& problem, Bytes budget);
ir::Expected<std::vector<FrontierPoint>> computeFrontier(const Problem& problem);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_PLAN_H_
