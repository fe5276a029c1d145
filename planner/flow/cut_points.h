// SPDX-License-Identifier: Apache-2.0
//
// Where chains of recomputes end. A recompute needs its inputs, and those that were dropped come
// back with it, and theirs: one recompute could bring back everything at once. At a cut point the
// few storages that a chain would pass through are not dropped, so that each stretch between two
// cut points is run again by itself. Cut points lie where the fewest such bytes are.
#ifndef STOWAGE_PLANNER_FLOW_CUT_POINTS_H_
#define STOWAGE_PLANNER_FLOW_CUT_POINTS_H_

#include <optional>
#include <vector>

#include "planner/problem/gaps.h"
#include "planner/problem/recompute_costs.h"

namespace stowage::planner {

/// By gap: what its recompute costs; nothing where none is possible.
using RecomputeCosts = std::vector<std::optional<RecomputeCost>>;

RecomputeCosts findRecomputeCosts(const GapTable& table);

/// By gap: may it be recomputed when chains end at about `cuts` points, evenly spaced in time?
std::vector<bool> chooseRecomputable(const GapTable& table, const RecomputeCosts& costs,
                                     int32_t cuts);

/// By gap: is it dropped when forward runs again as a whole, segment by segment? Those from forward
/// to backward that `chooseRecomputable` allows.
std::vector<bool> chooseSegments(const GapTable& table, int32_t cuts);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FLOW_CUT_POINTS_H_
