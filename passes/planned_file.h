// SPDX-License-Identifier: Apache-2.0
//
// Converts between planning results and plan files: from a PlannedStep to its PlanFile; from a
// step's graph and a PlanFile to the graph in the plan's order. Not here: JSON
// (planner/files/plan_json.h), files.
#ifndef STOWAGE_PASSES_PLANNED_FILE_H_
#define STOWAGE_PASSES_PLANNED_FILE_H_

#include <llvm/ADT/STLFunctionalExtras.h>

#include <string>

#include "passes/plan_step.h"
#include "planner/files/plan_file.h"

namespace stowage::passes {

/// Versions, costs and where the graph is are the caller's.
planner::PlanFile makePlanFile(const PlannedStep& planned, const ir::Target& target,
                               const PlanStepOptions& options);

struct ArrangedGraph {
  ir::Graph graph;
  Order order = Order::kProgram;
};
/// `graph`, which is normalised, in the order whose fingerprint the plan names. `where` it is, for
/// the message: "of step.stow". Errors: kPlanMismatch with the plan's file.
ir::Expected<ArrangedGraph> arrangeForPlan(const ir::Graph& graph, const planner::PlanFile& plan,
                                           const std::string& where);

/// Measures the ops of the step in row blocks, which a plan may choose, and adds their rows.
/// `measure` gets each such graph. Errors: those of `measure`.
ir::Error addRowBlockCosts(
    const ir::Graph& graph, ir::CostTable& costs,
    llvm::function_ref<ir::Expected<ir::CostTable>(const ir::Graph&)> measure);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_PLANNED_FILE_H_
