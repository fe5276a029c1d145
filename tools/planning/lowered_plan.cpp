// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/lowered_plan.h"

#include <utility>

#include "passes/lower.h"
#include "planner/bound/lower_bound.h"
#include "planner/evaluate/evaluate.h"

namespace stowage::tools {

namespace {

ir::Error checkHost(const planner::Timetable& timetable, Bytes limit) {
  if (timetable.hostPeak <= limit) return ir::success();
  ir::Infeasible infeasible{
      .budget = limit, .smallestBudget = timetable.hostPeak, .peakNode = "", .holders = {}};
  infeasible.space = ir::spaceName(ir::Space::kHost);
  ir::PlanError error(ir::ErrorCode::kInfeasible, "the host arena is above its limit");
  return ir::makeError(std::move(error.because(std::move(infeasible))));
}

}  // namespace

ir::Expected<passes::PlannedStep> lowerAgain(const LoadedPlan& plan, const PlanningInputs& inputs) {
  const ir::GraphMode mode = plan.file.schedule.graphMode;
  ir::Expected<planner::Problem> problem = planner::makeProblem(
      plan.graph, inputs.target, inputs.costs, {.disk = inputs.options.allowed.disk},
      inputs.options.limits, /*pins=*/{}, mode);
  if (!problem) return problem.takeError();
  ir::Expected<planner::Timetable> timetable = planner::evaluateWithin(
      *problem, {.rows = plan.file.schedule.decisions}, plan.file.budget, plan.file.prefetchLimit);
  if (!timetable) return timetable.takeError();
  if (ir::Error error = checkHost(*timetable, inputs.options.limits.host)) return error;
  ir::Expected<ir::Schedule> schedule =
      passes::lowerTimetable(plan.graph, inputs.target, *timetable, plan.file.budget, mode);
  if (!schedule) return schedule.takeError();
  passes::PlannedStep planned;
  planned.order = plan.order;
  planned.rowBlocks = plan.file.graph.rowBlocks;
  planned.hostUpdates = plan.file.graph.hostUpdates;
  planned.graph = plan.graph;
  planned.boundScope = passes::orderName(plan.order) +
                       passes::scopeBesideOrders(planned.rowBlocks, planned.hostUpdates);
  planned.result.bound = planner::computeLowerBound(*problem, plan.file.budget).stepTime;
  planned.schedule = std::move(*schedule);
  planned.schedule.predicted.bound = planned.result.bound;
  planned.result.timetable = std::move(*timetable);
  return planned;
}

}  // namespace stowage::tools
