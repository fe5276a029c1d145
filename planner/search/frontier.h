// SPDX-License-Identifier: Apache-2.0
//
// All plans that are known, independent of the budget that is asked for, where the host is not
// limited. A fixed grid of budgets lies between what one node needs at least and what everything
// needs at once; a search at each grid budget leaves a pool of evaluated plans. Every fourth grid
// budget is a main one, in large steps every eighth. A question for B bytes is answered by the
// fastest plan with a peak of at most B from these pools:
// - the main ones up to the first main one above B;
// - those between that one and the main one before it, up to the first above B. Of them no plan
//   counts that is faster than what the main pools know for that main budget.
// So the time never rises with B, and a question looks at few pools however low it comes.
// Pools are made when they are asked for, from B downwards, and those whose lower bound is not
// below the best time are left out: they could not answer. A pool depends on the problem and its
// grid budget alone, so several are made at once, the more the further down a question has come.
#ifndef STOWAGE_PLANNER_SEARCH_FRONTIER_H_
#define STOWAGE_PLANNER_SEARCH_FRONTIER_H_

#include <memory>
#include <optional>
#include <vector>

#include "planner/search/budget_search.h"
#include "planner/search/search_watch.h"

namespace stowage::planner {

struct LowestPlan {
  const KnownPlan* plan = nullptr;
  int64_t budget = 0;
};

class Frontier {
 public:
  /// Errors: kInvalidArgument for pins that cannot be kept.
  static ir::Expected<Frontier> make(const GapTable& table);

  /// `watch` may end searches and, if `tells`, hears of the plans that they find; null: nobody.
  void setWatch(SearchWatch* watch, bool tells);
  WatchPause pauseWatch() { return WatchPause(watch_); }

  /// The fastest known plan that needs at most `budget` bytes and takes less than `slowest`; null
  /// if there is none.
  const KnownPlan* findBest(int64_t budget, int64_t slowest = INT64_MAX);
  /// The same of the pools alone, without the plans below them.
  const KnownPlan* findInPools(int64_t budget, int64_t slowest = INT64_MAX);
  /// A plan that fits `budget`, from the main pools next to it; null if none of those does. The
  /// answer is as fast at least.
  const KnownPlan* findQuickly(int64_t budget);
  /// No answer to `budget` is faster. Makes no pools.
  int64_t leastTime(int64_t budget);
  /// The smallest budget that has an answer.
  LowestPlan findLowest();
  /// The smallest budget that has an answer in the pools, and a plan for it.
  std::optional<LowestPlan> findLowestInPools();
  /// That plan and plans below it, none faster than the answer to its budget. By falling peak.
  const Pool& lowest();
  /// Everything that is known, all pools made.
  std::vector<const KnownPlan*> all();

  const KnownPlan& keepAll() const { return search_->keepAll(); }
  const BudgetSearch& search() const { return *search_; }
  /// Rising.
  llvm::ArrayRef<int64_t> grid() const { return grid_; }
  /// All plans that the search for a grid budget met, those with a higher peak too.
  const Pool& pool(size_t index);
  /// Of the grid budgets; their number if none is.
  size_t firstAbove(int64_t budget) const;
  bool isMain(size_t index) const;

 private:
  explicit Frontier(std::unique_ptr<BudgetSearch> search);
  /// Makes `best` point to `plan` if that can answer and is better.
  static void consider(const KnownPlan& plan, int64_t budget, const KnownPlan*& best);
  bool fitsMadePools(int64_t budget) const;
  /// The first main one from `index` on.
  size_t mainFrom(size_t index) const;
  /// From `last` downwards: main ones; those behind the main one before.
  std::vector<size_t> mainDownFrom(size_t last) const;
  std::vector<size_t> betweenDownFrom(size_t last) const;
  struct Wanted {
    int64_t budget = 0;
    int64_t slowest = INT64_MAX;  // only plans that take less
    int64_t fastest = 0;          // and at least so long
  };
  /// Considers the plans of these pools, from the largest on, until none can be better than `best`.
  void considerPools(llvm::ArrayRef<size_t> indices, const Wanted& wanted, const KnownPlan*& best);
  /// The fastest plan from the main pools up to `last` and keeping everything.
  const KnownPlan* findInMainPools(size_t last, int64_t budget, int64_t slowest);
  /// No plan of the pool at `index` or of one below it is faster.
  int64_t leastOfPools(size_t index);
  /// What the flow expects of a grid budget. The pool keeps no plan that is faster, and what is
  /// expected of smaller budgets is never less.
  int64_t estimate(size_t index);
  /// Makes the missing ones of these pools side by side.
  void makePools(llvm::ArrayRef<size_t> indices);

  std::unique_ptr<BudgetSearch> search_;
  SearchWatch* watch_ = nullptr;
  bool tells_ = false;
  std::vector<int64_t> grid_;
  size_t mainEvery_ = 1;
  std::vector<std::optional<int64_t>> bounds_;     // of the grid budgets' times
  std::vector<std::optional<int64_t>> estimates_;  // of the grid budgets' times
  std::vector<std::optional<Pool>> pools_;
  std::optional<Pool> lowest_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_FRONTIER_H_
