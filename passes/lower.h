// SPDX-License-Identifier: Apache-2.0
//
// From a timetable to the schedule that is written to a file and executed: the lowering passes in
// one call.
#ifndef STOWAGE_PASSES_LOWER_H_
#define STOWAGE_PASSES_LOWER_H_

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "planner/problem/timetable.h"

namespace stowage::passes {

/// At level kSynced, verified after every pass, with a device arena of exactly `budget` bytes.
/// Decisions, fingerprints and claims are filled in, all but the bound, which a timetable does not
/// know. Errors: kInfeasible when the timetable needs more than the budget; kViolation with a
/// reproducer when a pass made something illegal.
ir::Expected<ir::Schedule> lowerTimetable(const ir::Graph& graph, const ir::Target& target,
                                          const planner::Timetable& timetable, Bytes budget,
                                          ir::GraphMode graphMode = ir::GraphMode::kNone);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_LOWER_H_
