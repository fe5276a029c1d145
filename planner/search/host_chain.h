// SPDX-License-Identifier: Apache-2.0
//
// Plans for one device budget with less and less on the host. The chain runs from the answer
// without a limit to the plan with the least, over evenly spaced host targets; each is searched
// for. A level only adds plans that are no faster than those of the levels above it, so less host
// memory is never faster. A question needs only the levels down to its own limit, or below it to
// the first that is as slow as it asks. The chain depends on the budget and the problem, not on the
// limits asked for or their order.
#ifndef STOWAGE_PLANNER_SEARCH_HOST_CHAIN_H_
#define STOWAGE_PLANNER_SEARCH_HOST_CHAIN_H_

#include <vector>

#include "planner/search/budget_search.h"

namespace stowage::planner {

class HostChain {
 public:
  /// `first`: the answer for `budget` without a limit. `last`: the plan with the lowest peak on the
  /// host, lower than that of `first`; it is not faster.
  HostChain(const BudgetSearch& search, int64_t budget, const KnownPlan& first, KnownPlan last);

  /// The best plan with at most `host` bytes on the host that is faster than `slowest` and takes at
  /// least `fastest`; null if there is none.
  const KnownPlan* find(int64_t host, int64_t slowest, int64_t fastest = 0);
  const KnownPlan& last() const { return last_; }

 private:
  struct Level {
    int64_t host = 0;  // bytes on the host, at most
    Pool plans;        // with at least as much as the last plan; some with more than `host`
    int64_t time = 0;  // of the fastest plan so far with at most `host`
  };
  int levelCount() const;
  int64_t hostOf(int level) const;
  Level make(int level) const;

  const BudgetSearch* search_;
  int64_t budget_;
  KnownPlan last_;
  std::vector<Level> levels_;  // falling
};

/// Order of answers: faster, then moves less, then a lower peak.
bool isBetter(const KnownPlan& a, const KnownPlan& b);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_HOST_CHAIN_H_
