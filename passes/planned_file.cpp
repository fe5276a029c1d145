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
  if (options.allowed.disk && options.limits.disk > Bytes(0)) file.diskLimit = options.limits.disk;
  file.stalls = planned.result.timetable.stalls;
  file.boundScope = planned.boundScope;
  file.graph.rowBlocks = planned.rowBlocks;
  file.graph.hostUpdates = planned.hostUpdates;
  return file;
}

ir::Expected<ArrangedGraph> arrangeForPlan(const ir::Graph& graph, const planner::PlanFile& plan,
                                           const std::string& where) {
  std::string found;
  // An embedded graph is the plan's already.
  if (ir::fingerprint(graph) == plan.graph.fingerprint) {
    if (ir::Error error = planner::checkPlanGraph(plan, graph)) return error;
    return ArrangedGraph{.graph = graph, .order = Order::kProgram};
  }
  ir::Expected<ir::Graph> ofRank = graphForRanks(graph, plan.graph.ranks);
  if (!ofRank) return ofRank.takeError();
  for (const Order order : kAllOrders) {
    ir::Expected<ir::Graph> arranged =
        arrangeGraph(*ofRank, order, plan.graph.rowBlocks, plan.graph.hostUpdates);
    if (!arranged) return arranged.takeError();
    const std::string fingerprint = ir::fingerprint(*arranged);
    if (fingerprint == plan.graph.fingerprint) {
      if (ir::Error error = planner::checkPlanGraph(plan, *arranged)) return error;
      return ArrangedGraph{.graph = std::move(*arranged), .order = order};
    }
    if (order == Order::kProgram) found = fingerprint;
  }
  return ir::makeError(ir::PlanError(ir::ErrorCode::kPlanMismatch,
                                     "found graph '" + graph.name() + "' " + where +
                                         " with fingerprint " + found +
                                         " in program order, expected the plan's in any order, " +
                                         plan.graph.fingerprint)
                           .at({.file = plan.path}));
}

ir::Error addRowBlockCosts(
    const ir::Graph& graph, ir::CostTable& costs,
    llvm::function_ref<ir::Expected<ir::CostTable>(const ir::Graph&)> measure) {
  ir::Expected<std::vector<int64_t>> found = findRowBlocks(graph, PlanStepOptions().rowBlocks);
  if (!found) return found.takeError();
  for (const int64_t blocks : *found) {
    ir::Expected<ir::Graph> blocked = arrangeGraph(graph, Order::kProgram, blocks);
    if (!blocked) return blocked.takeError();
    ir::Expected<ir::CostTable> more = measure(*blocked);
    if (!more) return more.takeError();
    costs.bySignature.merge(more->bySignature);
  }
  return ir::success();
}

}  // namespace stowage::passes
