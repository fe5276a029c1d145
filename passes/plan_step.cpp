// SPDX-License-Identifier: Apache-2.0
#include "passes/plan_step.h"

#include <utility>

#include "passes/hoist_updates.h"
#include "passes/lower.h"

namespace stowage::passes {

namespace {

/// The more useful of two negative answers: the one that names the smaller budget.
ir::PlanError betterNo(std::optional<ir::PlanError> known, ir::PlanError other) {
  if (!known) return other;
  const bool otherIsSmaller =
      other.infeasible() && known->infeasible() &&
      other.infeasible()->smallestBudget < known->infeasible()->smallestBudget;
  return otherIsSmaller ? std::move(other) : std::move(*known);
}

bool isFaster(const planner::PlanResult& a, const planner::PlanResult& b) {
  return a.timetable.stepTime < b.timetable.stepTime;
}

struct Candidate {
  Order order = Order::kProgram;
  ir::Graph graph;
  planner::PlanResult result;
};

ir::Expected<Candidate> planOrder(const ir::Graph& graph, const ir::Target& target,
                                  const ir::CostTable& costs, const PlanStepOptions& options,
                                  Order order) {
  ir::Expected<ir::Graph> arranged = arrangeGraph(graph, order);
  if (!arranged) return arranged.takeError();
  ir::Expected<planner::Problem> problem =
      planner::makeProblem(*arranged, target, costs, options.allowed, options.limits, options.pins);
  if (!problem) return problem.takeError();
  problem->pinnedRows = options.pinnedRows;
  ir::Expected<planner::PlanResult> result = planner::plan(*problem, options.budget);
  if (!result) return result.takeError();
  return Candidate{.order = order, .graph = std::move(*arranged), .result = std::move(*result)};
}

}  // namespace

const char* orderName(Order order) { return order == Order::kProgram ? "program" : "hoisted"; }

std::optional<Order> findOrder(llvm::StringRef name) {
  if (name == "program") return Order::kProgram;
  if (name == "hoisted") return Order::kHoisted;
  return std::nullopt;
}

ir::Expected<ir::Graph> arrangeGraph(const ir::Graph& graph, Order order) {
  PassState state;
  state.graph = graph;
  if (order == Order::kProgram) return std::move(state.graph);
  ir::Expected<PassReport> report = HoistUpdates().run(state);
  if (!report) return report.takeError();
  return std::move(state.graph);
}

ir::Expected<PlannedStep> planStep(const ir::Graph& graph, const ir::Target& target,
                                   const ir::CostTable& costs, const PlanStepOptions& options) {
  std::optional<Candidate> best;
  std::optional<ir::PlanError> no;
  std::optional<Nanoseconds> bound;
  for (const Order order : options.orders) {
    ir::Expected<Candidate> candidate = planOrder(graph, target, costs, options, order);
    if (!candidate) {
      ir::PlanError payload = ir::takePayload(candidate.takeError());
      if (payload.code() != ir::ErrorCode::kInfeasible) return ir::makeError(std::move(payload));
      no = betterNo(std::move(no), std::move(payload));
      continue;
    }
    // The published bound holds for every order considered, so it is the smallest of theirs.
    bound = bound ? std::min(*bound, candidate->result.bound) : candidate->result.bound;
    if (!best || isFaster(candidate->result, best->result)) best = std::move(*candidate);
  }
  if (!best) return ir::makeError(std::move(*no));
  ir::Expected<ir::Schedule> schedule =
      lowerTimetable(best->graph, target, best->result.timetable, options.budget);
  if (!schedule) return schedule.takeError();
  best->result.bound = *bound;
  schedule->predicted.bound = *bound;
  schedule->predicted.computeTime = best->result.computeTime;
  return PlannedStep{.order = best->order,
                     .graph = std::move(best->graph),
                     .schedule = std::move(*schedule),
                     .result = std::move(best->result)};
}

}  // namespace stowage::passes
