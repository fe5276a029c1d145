// SPDX-License-Identifier: Apache-2.0
//
// Undoes offloads and recomputes that a plan does not need: keeps the largest storages in place
// first, as long as the evaluated plan stays within its peaks and is not slower.
// It tries whole batches at once and halves a batch that fails; the limit is a number of
// evaluations. Plan and goal in, plan out; never one that is slower or moves more.
#ifndef STOWAGE_PLANNER_SEARCH_REDUCE_TRANSFERS_H_
#define STOWAGE_PLANNER_SEARCH_REDUCE_TRANSFERS_H_

#include "planner/search/choose_actions.h"
#include "planner/search/known_plan.h"

namespace stowage::planner {

struct TransferGoal {
  int64_t peak = 0;       // of the device arena
  int64_t hostPeak = 0;   // of the host arena
  int64_t leastHost = 0;  // of the host arena: less is of no use
  bool sameTime = false;  // true: the result must not be faster either
  int evaluations = 0;    // at most
};

KnownPlan reduceTransfers(const GapTable& table, const FixedActions& fixed, KnownPlan plan,
                          const TransferGoal& goal);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_REDUCE_TRANSFERS_H_
