// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.h"

#include <cassert>
#include <utility>

#include "planner/explain.h"
#include "planner/frontier.h"

namespace stowage::planner {

namespace {

Decisions decisionsOf(const GapTable& table, const KnownPlan& plan) {
  Decisions decisions;
  for (size_t g = 0; g < plan.actions.size(); ++g) {
    const Gap& gap = table.gaps()[g];
    if (plan.actions[g] == ir::GapAction::kKeep) continue;
    decisions.rows.push_back({.storage = gap.storage,
                              .gapBegin = gap.begin,
                              .gapEnd = gap.end,
                              .action = plan.actions[g]});
  }
  return decisions;
}

ir::Error refuse(const GapTable& table, int64_t budget, Frontier& frontier) {
  const KnownPlan& lowest = frontier.findLowest();
  ir::Infeasible infeasible{
      .budget = Bytes(budget), .smallestBudget = Bytes(lowest.height), .peakNode = ""};
  ir::Expected<PeakHolders> peak = findPeakHolders(table, lowest.actions);
  if (!peak) return peak.takeError();
  if (peak->node.isValid()) infeasible.peakNode = table.problem().graph.describeNode(peak->node);
  infeasible.holders = std::move(peak->holders);
  return ir::makeError(ir::PlanError(ir::ErrorCode::kInfeasible,
                                     "no schedule fits " + formatBytes(Bytes(budget)) +
                                         ", expected at least " + formatBytes(Bytes(lowest.height)))
                           .because(std::move(infeasible)));
}

}  // namespace

ir::Expected<PlanResult> plan(const Problem& problem, Bytes budget) {
  const GapTable table(problem);
  ir::Expected<Frontier> frontier = Frontier::make(table);
  if (!frontier) return frontier.takeError();
  const KnownPlan* best = frontier->findBest(budget.value());
  if (best == nullptr) return refuse(table, budget.value(), *frontier);
  ir::Expected<Timetable> timetable =
      evaluateActions(table, best->actions, best->budget, PlacementEffort::kBestOrder);
  if (!timetable) return timetable.takeError();
  PlanResult result{.timetable = std::move(*timetable),
                    .bound = Nanoseconds(frontier->bound(budget.value())),
                    .computeTime = {},
                    .keepAllHeight = Bytes(frontier->keepAll().height),
                    .planNeeded = best != &frontier->keepAll()};
  assert(result.timetable.stepTime >= result.bound && "no schedule is faster than the bound");
  for (const ir::OpCost& cost : problem.costs.nodes) result.computeTime += cost.time;
  return result;
}

ir::Expected<std::vector<FrontierPoint>> computeFrontier(const Problem& problem) {
  const GapTable table(problem);
  ir::Expected<Frontier> frontier = Frontier::make(table);
  if (!frontier) return frontier.takeError();
  std::vector<FrontierPoint> points;
  for (const KnownPlan* plan : frontier->all()) {
    points.push_back({.height = Bytes(plan->height),
                      .time = Nanoseconds(plan->time),
                      .decisions = decisionsOf(table, *plan)});
  }
  return points;
}

}  // namespace stowage::planner
