// SPDX-License-Identifier: Apache-2.0
//
// How low a plan goes as it is: the same actions, with ever less room for prefetches and addresses.
// What gives a step its smallest budget, where no further search would find anything to give up.
#ifndef STOWAGE_PLANNER_SEARCH_SHRINK_TO_FIT_H_
#define STOWAGE_PLANNER_SEARCH_SHRINK_TO_FIT_H_

#include <vector>

#include "planner/search/known_plan.h"

namespace stowage::planner {

/// Plans with the actions of `plan`, each lower than the one before and than `plan`, none faster
/// than `plan`. The last is the lowest that was found, to one unit of alignment unless the
/// evaluations ran out.
std::vector<KnownPlan> shrinkToFit(const GapTable& table, const KnownPlan& plan, int evaluations);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_SHRINK_TO_FIT_H_
