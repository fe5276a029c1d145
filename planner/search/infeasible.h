// SPDX-License-Identifier: Apache-2.0
//
// A "no" that helps: which memory is missing (the device's, or the host's beside it), how much of
// it would do, what holds it, and whether pins are in the way. Asks the planner again with looser
// limits to find out, so it is slower than a "yes".
#ifndef STOWAGE_PLANNER_SEARCH_REFUSAL_H_
#define STOWAGE_PLANNER_SEARCH_REFUSAL_H_

#include "planner/search/limited_frontier.h"

namespace stowage::planner {

/// The kInfeasible error for a budget to which `frontier` has no answer.
ir::Error refuse(const GapTable& table, LimitedFrontier& frontier, int64_t budget);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_REFUSAL_H_
