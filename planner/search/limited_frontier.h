// SPDX-License-Identifier: Apache-2.0
//
// Answers a device budget B when the host also has a limit H. Two sets of plans may answer: those
// known without a limit for budgets up to B, and the chains (planner/search/host_chain.h) of all
// main grid budgets up to B. Where these have an answer, chains between B and the main grid budget
// below it may have a faster one; it is no faster than what the next main one has.
// The fastest with at most H bytes on the host is the answer. Neither set depends on H and both
// only grow with B, so more B or H is never slower. No plan is faster than the answer without a
// limit, which is used if it keeps to H. Work goes from B downwards and stops where bounds of time
// and host bytes exclude anything better.
// The smallest limit for B is the least host memory of these plans. An answer drops needless
// transfers, but never goes below that least: the next larger budget has other plans and may need
// more. So the host bytes of an answer are always a feasible limit.
// With a disk, answers without a limit to the main grid budgets up to B answer too, with what is
// too much for the host on disk (planner/search/disk_spill.h). That set also only grows with B.
#ifndef STOWAGE_PLANNER_SEARCH_LIMITED_FRONTIER_H_
#define STOWAGE_PLANNER_SEARCH_LIMITED_FRONTIER_H_

#include <llvm/ADT/ArrayRef.h>

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/search/disk_spill.h"
#include "planner/search/frontier.h"
#include "planner/search/host_chain.h"

namespace stowage::planner {

/// The least that a budget needs of the host, and a plan that needs no more.
struct LeastHost {
  const KnownPlan* plan = nullptr;
  int64_t bytes = 0;
  bool wasEnded = false;  // before the end of the search: less may do
};

class LimitedFrontier {
 public:
  /// The limit is that of the problem when a question is asked. Errors: kInvalidArgument for pins
  /// that cannot be kept.
  static ir::Expected<LimitedFrontier> make(const GapTable& table);

  /// `watch` may end searches and hears of plans where the host is not limited; null: nobody.
  void setWatch(SearchWatch* watch);

  /// The fastest known plan that keeps to `budget` and to the limit and takes less than `slowest`;
  /// null if there is none.
  const KnownPlan* findBest(int64_t budget, int64_t slowest = INT64_MAX);
  /// A plan that fits, found in less time; null if that finds none. The answer is as fast at least.
  const KnownPlan* findQuickly(int64_t budget);
  /// No answer to `budget` is faster. Takes little time.
  int64_t leastTime(int64_t budget) { return frontier_.leastTime(budget); }
  /// No answer to `budget` has less on the host; 0 where there is a disk. Takes little time.
  int64_t leastHost(int64_t budget) const { return hasDisk() ? 0 : hostNeed(budget); }
  /// The plan with needless transfers removed: as much stays as `budget` holds, at equal time.
  /// Under a host limit it keeps at least the bytes on the host that findLeastHost gives, so that
  /// a limit of what it needs has an answer.
  KnownPlan settle(const KnownPlan& plan, int64_t budget);
  /// The smallest budget that has an answer; no plan if all need more than the host may give.
  LowestPlan findLowest();
  /// The smallest limit with which `budget` has an answer; no plan if none has. Looks for no less
  /// once nothing below `ofUse` can be found.
  LeastHost findLeastHost(int64_t budget, int64_t ofUse = INT64_MAX);
  /// All that can be an answer, by falling peak, each faster than the lower ones.
  std::vector<const KnownPlan*> all();

  bool isLimited() const { return limit() < kUnlimited; }
  const KnownPlan& keepAll() const { return frontier_.keepAll(); }
  int64_t bound(int64_t budget) const { return frontier_.search().bound(budget); }
  const BoundSolver& solver() const { return frontier_.search().solver(); }

 private:
  /// By the problem's limits when it was asked for, and the grid budget.
  using SpillKey = std::tuple<int64_t, int64_t, int64_t>;
  struct Spilled {
    std::optional<KnownPlan> plan;
    int64_t leastHost = INT64_MAX;  // of the plans that were tried
  };
  bool hasDisk() const;
  const Spilled& spilled(const KnownPlan& plan, int64_t budget);
  /// The fastest plan with a disk that fits and takes less than `slowest`; null if none is known.
  const KnownPlan* findOnDisk(int64_t budget, int64_t slowest);
  struct Answer {
    const KnownPlan* plan = nullptr;
    int64_t from = 0;  // the smallest budget of the cell that it answers
  };
  /// The budgets from one grid budget, `begin`, to below the next one, `end`.
  struct Cell {
    size_t index = 0;  // of the grid budget `end`
    int64_t begin = 0;
    int64_t end = 0;
    std::optional<std::vector<Answer>> answers;  // known without a limit
    bool hasChain = false;                       // looked for
    std::optional<HostChain> chain;              // for `begin`
    bool isMain = false;                         // `begin` is a main grid budget
  };
  LimitedFrontier(const GapTable& table, Frontier frontier);
  int64_t limit() const { return table_->problem().limits.host.value(); }
  /// No plan of at most `peak` bytes has less on the host.
  int64_t hostNeed(int64_t peak) const;
  void findStayingBytes();
  void findOwnBytes();
  /// `best`, or a better plan with less on the host than the fastest.
  const KnownPlan* findWithin(int64_t budget, const KnownPlan* best);
  /// The same from the chains of main cells alone. Only these make a limit possible.
  const KnownPlan* findInMainCells(int64_t budget, const KnownPlan* best);
  /// A limit with which `budget` has an answer: of at most `wanted` bytes if one is at hand, else
  /// the lowest that is found in little time.
  int64_t findAnswerableHost(int64_t budget, int64_t wanted);
  const std::vector<Answer>& answers(Cell& cell);
  HostChain* chain(Cell& cell);
  /// The plans of a chain's ends; nothing where its budget has no plan. Changes nothing.
  std::optional<HostChain> makeChain(const Cell& cell, const KnownPlan* first) const;
  /// Makes the missing chains of this main cell and of some below it, `count` at most.
  void makeMainChains(size_t index, size_t count);
  /// Side by side.
  void makeChains(llvm::ArrayRef<Cell*> cells);
  /// `plan` or, where that is faster than `time`, the same with less room for prefetches; nothing
  /// if that does not make it slow enough.
  std::optional<KnownPlan> notFaster(KnownPlan plan, int64_t time, int64_t budget) const;
  /// `plan` with less and less on the host, by removing needless transfers.
  KnownPlan lowerHost(KnownPlan plan, int64_t budget) const;

  const GapTable* table_;
  Frontier frontier_;
  SearchWatch* watch_ = nullptr;
  std::vector<Cell> cells_;   // rising
  int64_t stayingBytes_ = 0;  // at one node, on the device or the host: the most
  int64_t ownBytes_ = 0;      // on the host all the time, whatever the plan
  std::map<SpillKey, Spilled> spilled_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_LIMITED_FRONTIER_H_
