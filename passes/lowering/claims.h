// SPDX-License-Identifier: Apache-2.0
//
// Computes a plan's claims (peaks, bytes moved, times) from the placed schedule and its timetable.
// The lower bound is not in a timetable: the caller that planned fills it in.
#ifndef STOWAGE_PASSES_LOWERING_CLAIMS_H_
#define STOWAGE_PASSES_LOWERING_CLAIMS_H_

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "planner/problem/timetable.h"

namespace stowage::passes {

ir::Prediction computeClaims(const ir::Graph& graph, const ir::Target& target,
                             const ir::Schedule& schedule, const planner::Timetable& timetable);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_LOWERING_CLAIMS_H_
