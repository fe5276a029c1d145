// SPDX-License-Identifier: Apache-2.0
//
// Finds the lowest peak of one list of actions, by evaluating them with lower and lower prefetch
// limits. It gives a step its smallest budget, once the search has no more gaps to give up.
#ifndef STOWAGE_PLANNER_SEARCH_SHRINK_TO_FIT_H_
#define STOWAGE_PLANNER_SEARCH_SHRINK_TO_FIT_H_

#include <vector>

#include "planner/search/known_plan.h"

namespace stowage::planner {

/// Plans with the actions of `plan`. Each has a lower peak than the one before; the first has a
/// lower peak than `plan`. None is faster than `plan`. The last has the lowest peak that was found,
/// to one unit of alignment unless the evaluations ran out.
std::vector<KnownPlan> shrinkToFit(const GapTable& table, const KnownPlan& plan, int evaluations);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_SHRINK_TO_FIT_H_
