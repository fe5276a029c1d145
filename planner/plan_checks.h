// SPDX-License-Identifier: Apache-2.0
//
// What a plan that comes from a file must stand before anything runs by it, beside its graph and
// its target (planner/plan_file.h): the verifier's rules, and the memory that ops need here.
#ifndef STOWAGE_PLANNER_PLAN_CHECKS_H_
#define STOWAGE_PLANNER_PLAN_CHECKS_H_

#include <cstddef>

#include "ir/cost_table.h"
#include "ir/error.h"
#include "ir/graph.h"
#include "planner/plan_file.h"

namespace stowage::planner {

/// `graph` in the plan's order. Costs take no part: times and temporaries of another measurement
/// are no fault. Errors: kViolation with the plan's file and a note per violation.
ir::Error checkPlanRules(const PlanFile& plan, const ir::Graph& graph);

/// How many ops need more temporary memory by `costs` than the plan gives them.
size_t countGrownOps(const PlanFile& plan, const ir::NodeCosts& costs);
/// Errors: kViolation, "V17: ...", with the ops that grew.
ir::Error checkPlanTemporaries(const PlanFile& plan, const ir::Graph& graph,
                               const ir::NodeCosts& costs);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_PLAN_CHECKS_H_
