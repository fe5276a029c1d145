// SPDX-License-Identifier: Apache-2.0
//
// How low a plan goes as it is: the same actions, with ever less room for prefetches and addresses.
// What gives a step its smallest budget, where no further search would find anything to give up.
#ifndef STOWAGE_PLANNER_SQUEEZE_H_
#define STOWAGE_PLANNER_SQUEEZE_H_

#include <vector>

#include "planner/known_plan.h"

namespace stowage::planner {

/// Plans with the actions of `plan`, each lower than the one before and than `plan`, none faster
/// than `plan`. The last is the lowest that was found, to one unit of alignment unless the
/// evaluations ran out.
std::vector<KnownPlan> squeeze(const GapTable& table, const KnownPlan& plan, int evaluations);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SQUEEZE_H_
