// SPDX-License-Identifier: Apache-2.0
//
// Whether ops fit the places that a plan has for them on the machine that is to run it, where they
// were measured. Is the plan right by itself: planner/verdict/plan_verdict.h.
#ifndef STOWAGE_PLANNER_FILES_PLAN_CHECKS_H_
#define STOWAGE_PLANNER_FILES_PLAN_CHECKS_H_

#include <cstddef>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "planner/files/plan_file.h"

namespace stowage::planner {

/// How many ops need more temporary memory by `costs` than the plan gives one of their launches.
size_t countGrownOps(const PlanFile& plan, const ir::NodeCosts& costs);
/// Errors: kViolation, "V17: ...", with the ops that grew.
ir::Error checkPlanTemporaries(const PlanFile& plan, const ir::Graph& graph,
                               const ir::NodeCosts& costs);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_PLAN_CHECKS_H_
