// SPDX-License-Identifier: Apache-2.0
#include "passes/planned_file.h"

#include <utility>

#include "ir/schedule/fingerprint.h"

namespace stowage::passes {

planner::PlanFile makePlanFile(const PlannedStep& planned, const ir::Target& target,
                               const PlanStepOptions& options) {
  planner::PlanFile file =
      planner::makePlanFile(planned.graph, target, planned.schedule, options.budget);
  file.prefetchLimit = planned.result.timetable.prefetchLimit;
  if (options.limits.host < planner::Limits().host) file.hostLimit = options.limits.host;
  file.stalls = planned.result.timetable.stalls;
  file.boundScope = planned.boundScope;
  return file;
}

ir::Expected<ArrangedGraph> arrangeForPlan(const ir::Graph& graph, const planner::PlanFile& plan,
                                           const std::string& where) {
  std::string found;
  for (const Order order : {Order::kProgram, Order::kHoisted}) {
    ir::Expected<ir::Graph> arranged = arrangeGraph(graph, order);
    if (!arranged) return arranged.takeError();
    const std::string fingerprint = ir::fingerprint(*arranged);
    if (fingerprint == plan.graph.fingerprint) {
      if (ir::Error error = planner::checkPlanGraph(plan, *arranged)) return error;
      return ArrangedGraph{.graph = std::move(*arranged), .order = order};
    }
    found += (found.empty() ? "" : " and ") + fingerprint + " in " + orderName(order) + " order";
  }
  return ir::makeError(ir::PlanError(ir::ErrorCode::kPlanMismatch,
                                     "found graph '" + graph.name() + "' " + where +
                                         " with fingerprint " + found + ", expected the plan's, " +
                                         plan.graph.fingerprint)
                           .at({.file = plan.path}));
}

}  // namespace stowage::passes
