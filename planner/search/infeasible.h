// SPDX-License-Identifier: Apache-2.0
//
// The error for a budget that no plan fits. It names the memory that is short (the device's or the
// host's), how much is enough, what holds it, and which pins prevent a plan. The planner runs again
// with looser limits to find out, so this takes longer than finding a plan.
#ifndef STOWAGE_PLANNER_SEARCH_INFEASIBLE_H_
#define STOWAGE_PLANNER_SEARCH_INFEASIBLE_H_

#include "planner/search/limited_frontier.h"

namespace stowage::planner {

/// The kInfeasible error for a budget to which `frontier` has no answer. Of the host, only less
/// than `hostOfUse` is looked for.
ir::Error explainInfeasible(const GapTable& table, LimitedFrontier& frontier, int64_t budget,
                            int64_t hostOfUse);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_INFEASIBLE_H_
