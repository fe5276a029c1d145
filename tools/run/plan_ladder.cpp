// SPDX-License-Identifier: Apache-2.0
#include "tools/run/plan_ladder.h"

#include <utility>

#include "ir/base/format_apart.h"
#include "planner/files/plan_checks.h"
#include "planner/files/plan_json.h"
#include "planner/targets/roofline.h"
#include "runtime/torch/torch_version.h"
#include "tools/cli/progress.h"
#include "tools/planning/lowered_plan.h"
#include "tools/planning/plan_output.h"
#include "tools/planning/planning_flags.h"

namespace stowage::tools {

namespace {

/// How ops allocate was measured; without a file of costs their times are the profile's.
ir::CostTable costsWithTimes(const LoadedPlan& plan, const CostsHere& costs) {
  if (costs.hasLinks) return costs.table;
  ir::CostTable table = planner::rooflineCosts(plan.graph, plan.file.target);
  for (auto& [signature, cost] : table.bySignature) {
    const auto measured = costs.table.bySignature.find(signature);
    if (measured == costs.table.bySignature.end()) continue;
    const Nanoseconds work = cost.work;
    cost = measured->second;
    cost.work = work;
    cost.launch = Nanoseconds(0);
  }
  return table;
}

PlanningInputs inputsFor(const LoadedPlan& plan, const CostsHere& costs) {
  PlanningInputs inputs;
  inputs.graph = plan.graph;
  inputs.target = plan.file.target;
  inputs.costs = costsWithTimes(plan, costs);
  inputs.costsTorchVersion = runtime::torchVersion();
  inputs.options.budget = plan.file.budget;
  inputs.options.graphMode = plan.file.schedule.graphMode;
  takeLimits(plan.file, inputs.options);
  return inputs;
}

/// The plan's own text, read back and proven, in its place.
ir::Error replace(LoadedPlan& plan, const PlanningInputs& inputs, passes::PlannedStep planned,
                  const CommonFlags& flags) {
  ir::Expected<std::string> text = makePlanText({.inputs = inputs,
                                                 .planned = planned,
                                                 .graphPath = plan.graphPath,
                                                 .planPath = plan.file.path,
                                                 .flags = flags});
  if (!text) return text.takeError();
  ir::Expected<planner::PlanFile> file = planner::readPlan(*text, plan.file.path);
  if (!file) return file.takeError();
  plan.file = std::move(*file);
  plan.graph = std::move(planned.graph);
  plan.order = planned.order;
  return ir::success();
}

ir::Expected<passes::PlannedStep> planAnew(const LoadedPlan& plan, PlanningInputs inputs,
                                           const CommonFlags& flags) {
  const Waiting waiting(!flags.quiet, "planning for " + formatBytes(plan.file.budget));
  // An embedded graph is in the plan's order, whichever that is. Ops were measured for the plan's
  // row blocks and updates on the host only.
  inputs.options.rowBlocks.clear();
  if (plan.graphPath.empty() || plan.file.graph.hasOtherOps()) {
    inputs.options.orders = {passes::Order::kProgram};
  } else {
    inputs.graph = plan.step;
    for (const ir::DecisionRow& row : plan.file.schedule.decisions) {
      if (row.pinned) inputs.options.pinnedRows.push_back(row);
    }
    if (!inputs.options.pinnedRows.empty()) inputs.options.orders = {plan.order};
  }
  ir::Expected<passes::PlannedStep> planned =
      passes::planStep(inputs.graph, inputs.target, inputs.costs, inputs.options);
  if (planned) {
    planned->rowBlocks = plan.file.graph.rowBlocks;
    planned->hostUpdates = plan.file.graph.hostUpdates;
  }
  return planned;
}

std::string countOps(size_t count) {
  return count == 1 ? "1 op needs" : std::to_string(count) + " ops need";
}

/// Names the ops that grew and what the decisions would need with them.
ir::Error explainGrownOps(const LoadedPlan& plan, const CostsHere& costs,
                          const ir::Infeasible& needed) {
  ir::PlanError error =
      ir::takePayload(planner::checkPlanTemporaries(plan.file, plan.graph, costs.nodes));
  const auto sizes = formatApart(needed.smallestBudget, needed.budget);
  error.note("with them the plan's decisions need " + sizes.first + " of the " + needed.space +
             ", it has " + sizes.second + "; --replan decides anew");
  return ir::makeError(std::move(error));
}

}  // namespace

ir::Error fitToMachine(LoadedPlan& plan, const LadderRequest& request) {
  const size_t grown = planner::countGrownOps(plan.file, request.costs.nodes);
  if (grown == 0) return ir::success();
  const std::string why =
      countOps(grown) + " more temporary memory here than the plan was made for: ";
  const PlanningInputs inputs = inputsFor(plan, request.costs);
  ir::Expected<passes::PlannedStep> planned = lowerAgain(plan, inputs);
  std::string what = "the same decisions, placed anew within the budget";
  if (!planned) {
    const ir::PlanError error = ir::takePayload(planned.takeError());
    if (!error.infeasible()) return ir::makeError(error);
    if (!request.replan) return explainGrownOps(plan, request.costs, *error.infeasible());
    planned = planAnew(plan, inputs, request.flags);
    if (!planned) return planned.takeError();
    what = "planned anew within the budget";
  }
  if (ir::Error error = replace(plan, inputs, std::move(*planned), request.flags)) return error;
  ir::Expected<ir::NodeCosts> nodes =
      ir::resolveCosts(plan.graph, request.costs.table, plan.file.schedule.graphMode);
  if (!nodes) return nodes.takeError();
  request.costs.nodes = std::move(*nodes);
  remark(why + what, request.flags);
  return ir::success();
}

}  // namespace stowage::tools
