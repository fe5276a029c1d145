// SPDX-License-Identifier: Apache-2.0
//
// Searches plans for one device budget. The flow over the whole step chooses actions with several
// numbers of cut points, walks choose them with several prices of recompute. Each choice is
// evaluated and corrected by the result: by its peak, and by where compute waits. A host target is
// optional; then only walks choose. Plans may exceed it, so the caller compares. The result depends
// on the problem and the arguments alone, never on the problem's host limit.
#ifndef STOWAGE_PLANNER_SEARCH_BUDGET_SEARCH_H_
#define STOWAGE_PLANNER_SEARCH_BUDGET_SEARCH_H_

#include <llvm/ADT/STLFunctionalExtras.h>

#include <optional>
#include <vector>

#include "planner/bound/bound_solver.h"
#include "planner/search/choose_actions.h"
#include "planner/search/flow_choice.h"
#include "planner/search/known_plan.h"

namespace stowage::planner {

constexpr int64_t kUnlimited = INT64_MAX / 4;

using Pool = std::vector<KnownPlan>;

struct SearchGoal {
  int64_t budget = 0;           // bytes of the device
  int64_t host = kUnlimited;    // bytes of the host
  int64_t slowest = INT64_MAX;  // only faster plans are of use
  int64_t fastest = 0;          // faster plans are of no use either
  bool walks = true;            // false: only the flow's choices, which take less time; true: in a
                                // step of some size walks too where none of these fits
};

class BudgetSearch {
 public:
  /// Errors: kInvalidArgument for pins that cannot be kept.
  static ir::Expected<BudgetSearch> make(const GapTable& table);

  /// All plans that it met, those with a higher peak than the budget too.
  Pool run(const SearchGoal& goal) const;
  /// A plan with as little on the host as is known for `budget`, which is `need` at least; nothing
  /// if none was found.
  std::optional<KnownPlan> findLeastHost(int64_t budget, int64_t need) const;
  /// `plan` with as many storages kept in place as `budget` holds, in exactly the same time. It
  /// uses at most `host` bytes on the host, and at least `leastHost` if it has that many.
  KnownPlan settle(const KnownPlan& plan, int64_t budget, int64_t host,
                   int64_t leastHost = 0) const;

  const GapTable& table() const { return *table_; }
  const BoundSolver& solver() const { return solver_; }
  int64_t bound(int64_t budget) const { return solver_.bound(budget); }
  /// What the flow expects (planner/search/flow_choice.h).
  std::optional<int64_t> estimate(int64_t budget) const { return flow_.estimate(budget); }
  const KnownPlan& keepAll() const { return keepAll_; }
  const FixedActions& fixed() const { return chooser_.fixed(); }
  /// True for a step with so many nodes that fewer candidates are tried.
  bool isLarge() const;

 private:
  bool isSmall() const;
  /// Chooses by a rule, with targets of bytes on the device and on the host.
  using ChooseWithin = llvm::function_ref<Choice(int64_t target, int64_t hostTarget)>;

  BudgetSearch(const GapTable& table, ActionChooser chooser, KnownPlan keepAll);
  /// Add what they meet to `found`; lower `fastest` to the fastest plan that fits.
  void tryFlow(FlowRule rule, const SearchGoal& goal, int64_t& fastest, Pool& found) const;
  void tryLevel(ChooseWithin choose, const SearchGoal& goal, int64_t& fastest, Pool& found) const;
  /// Removes needless transfers from the fastest plan of `found` that fits; adds the result.
  void improve(const SearchGoal& goal, Pool& found) const;
  /// Also reports as too slow: actions that `known` already has, and peaks far above the budget.
  Tried tryChoice(Choice choice, const Useful& useful, const Pool& known) const;
  /// The rule's plan if it fits `budget` and has at most `host` bytes on the host; its targets are
  /// corrected by what is too much. Else how much the device lacks at least, in `excess`.
  std::optional<KnownPlan> fitRule(ChoiceRule rule, int64_t host, int64_t& excess) const;

  const GapTable* table_;
  BoundSolver solver_;
  ActionChooser chooser_;
  FlowChooser flow_;
  KnownPlan keepAll_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_BUDGET_SEARCH_H_
