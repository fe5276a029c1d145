// SPDX-License-Identifier: Apache-2.0
//
// Evaluation on the inside: from an action per gap to a timetable, without decision rows. What the
// search calls; planner/evaluate.h is the same for decisions.
#ifndef STOWAGE_PLANNER_EVALUATION_H_
#define STOWAGE_PLANNER_EVALUATION_H_

#include "ir/error.h"
#include "planner/arena.h"
#include "planner/decisions.h"
#include "planner/gaps.h"
#include "planner/timetable.h"

namespace stowage::planner {

using Actions = std::vector<ir::GapAction>;  // by gap

/// Everything of a timetable but `decisions`, which are the rows that have an effect, without
/// reasons. Errors: as expand.
ir::Expected<Timetable> evaluateActions(const GapTable& table, const Actions& actions,
                                        int64_t budget, PlacementEffort effort);

/// Errors: kInvalidArgument for a row that names no gap.
ir::Expected<Actions> actionsOf(const GapTable& table, const Decisions& decisions);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATION_H_
