// SPDX-License-Identifier: Apache-2.0
//
// All plans that are known, independent of the budget that is asked for. A fixed grid of budgets
// lies between what one node needs at least and what everything needs at once; a search at each
// grid budget leaves a pool of evaluated plans. A question for B bytes is answered from the pools
// of the grid budgets up to the first one above B: the fastest plan that is not higher than B. The
// set of plans that may answer only grows with B, so the time never rises with it.
// Pools are made when they are asked for, from B downwards, and those whose lower bound is not
// below the best time are left out: they could not answer.
#ifndef STOWAGE_PLANNER_FRONTIER_H_
#define STOWAGE_PLANNER_FRONTIER_H_

#include <optional>
#include <vector>

#include "planner/bound_solver.h"
#include "planner/choose_actions.h"
#include "planner/known_plan.h"
#include "planner/plan.h"

namespace stowage::planner {

struct LowestPlan {
  const KnownPlan* plan = nullptr;
  int64_t budget = 0;
};

class Frontier {
 public:
  /// Errors: kInvalidArgument for pins that cannot be kept.
  static ir::Expected<Frontier> make(const GapTable& table);

  /// The fastest known plan that needs at most `budget` bytes and keeps to the limit of the host;
  /// null if there is none.
  const KnownPlan* findBest(int64_t budget);
  /// The same plan as an answer: of what it moves, as much as fits into `budget` stays, where that
  /// leaves the time as it is.
  KnownPlan settle(const KnownPlan& plan, int64_t budget) const;
  /// The smallest budget that has an answer; no plan if all need more than the host may give.
  LowestPlan findLowest();
  /// All that can be an answer, by falling height, each faster than the lower ones.
  std::vector<const KnownPlan*> all();

  const KnownPlan& keepAll() const { return keepAll_; }
  int64_t bound(int64_t budget) const { return solver_.bound(budget); }
  const BoundSolver& solver() const { return solver_; }

 private:
  using Pool = std::vector<KnownPlan>;
  Frontier(const GapTable& table, ActionChooser chooser, KnownPlan keepAll);
  const Pool& pool(size_t index);
  static bool isBetter(const KnownPlan& a, const KnownPlan& b);
  /// Makes `best` point to `plan` if that can answer and is better.
  void consider(const KnownPlan& plan, int64_t budget, const KnownPlan*& best) const;
  const KnownPlan* findInPools(int64_t budget);
  std::optional<LowestPlan> findLowestInPools();
  /// The plan that the smallest budget of any pool asks for, and plans below that.
  const Pool& lowest();
  Pool search(int64_t budget) const;
  int64_t hostLimit() const { return table_->problem().limits.host.value(); }
  bool isLarge() const;
  /// Adds what it meets to `found`; lowers `fastest` to the fastest plan that fits.
  void tryLevel(int64_t price, int64_t budget, int64_t& fastest, Pool& found) const;
  /// Adds what the fastest of `found` that fits becomes when it keeps as much as the budget allows.
  void improve(int64_t budget, Pool& found) const;
  bool keepsToHost(const KnownPlan& plan) const;
  /// Too slow as well: what is among `known` already, and what is far too high.
  Tried tryRule(const ChoiceRule& rule, const Useful& useful, const Pool& known) const;
  size_t firstAbove(int64_t budget) const;

  const GapTable* table_;
  BoundSolver solver_;
  ActionChooser chooser_;
  KnownPlan keepAll_;
  std::vector<int64_t> grid_;  // rising
  std::vector<std::optional<Pool>> pools_;
  std::optional<Pool> lowest_;  // falling heights
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FRONTIER_H_
