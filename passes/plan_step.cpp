// SPDX-License-Identifier: Apache-2.0
#include "passes/plan_step.h"

#include <optional>
#include <utility>
#include <vector>

#include "passes/lower.h"
#include "passes/normalise/hoist_updates.h"
#include "planner/evaluate/timing.h"

namespace stowage::passes {

namespace {

/// The more useful of two infeasible errors: the one that asks only for more host memory, else the
/// one that names the smaller budget.
ir::PlanError moreUseful(std::optional<ir::PlanError> known, ir::PlanError other) {
  if (!known) return other;
  if (!other.infeasible() || !known->infeasible()) return std::move(*known);
  const bool isHost = other.infeasible()->space == "host";
  const bool wasHost = known->infeasible()->space == "host";
  const bool isSmaller = other.infeasible()->smallestBudget < known->infeasible()->smallestBudget;
  return (isHost != wasHost ? isHost : isSmaller) ? std::move(other) : std::move(*known);
}

// Or as fast and moves less.
bool isBetter(const planner::PlanResult& a, const planner::PlanResult& b) {
  const auto moved = [](const planner::PlanResult& result) {
    return result.timetable.bytesOut + result.timetable.bytesIn;
  };
  return std::pair(a.timetable.stepTime, moved(a)) < std::pair(b.timetable.stepTime, moved(b));
}

}  // namespace

ir::Error checkGraphMode(const ir::Graph& graph, ir::GraphMode mode) {
  if (mode == ir::GraphMode::kNone) return ir::success();
  std::vector<bool> isWritten(graph.storages().size(), false);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      if (access.writes()) isWritten[access.storage.index()] = true;
    }
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::NodeId node(i);
    if (mode == ir::GraphMode::kNoUpdate && ir::endsGraph(graph.node(node))) break;
    for (const ir::Access& access : graph.accesses(node)) {
      const ir::Storage& storage = graph.storage(access.storage);
      const bool changes = storage.role == ir::Role::kInput || isWritten[access.storage.index()];
      if (!changes || storage.home != ir::Space::kHost) continue;
      return ir::makeError(ir::ErrorCode::kInfeasible,
                           "a CUDA graph cannot hold node " + graph.describeNode(node) +
                               (access.writes() ? ": it leaves '" : ": it reads '") + storage.name +
                               "' on the host, which a graph would not do again (rule V25)");
    }
  }
  return ir::success();
}

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

struct StepPlanner::OrderPlanner {
  Order order = Order::kProgram;
  ir::Graph graph;
  std::optional<planner::Problem> problem;
  std::optional<planner::Planner> planner;
};

StepPlanner::StepPlanner() = default;
StepPlanner::StepPlanner(StepPlanner&&) noexcept = default;
StepPlanner& StepPlanner::operator=(StepPlanner&&) noexcept = default;
StepPlanner::~StepPlanner() = default;

ir::Expected<StepPlanner> StepPlanner::make(const ir::Graph& graph, const ir::Target& target,
                                            const ir::CostTable& costs,
                                            const PlanStepOptions& options) {
  StepPlanner made;
  made.target_ = &target;
  made.graphMode_ = options.graphMode;
  if (ir::Error error = checkGraphMode(graph, options.graphMode)) return error;
  std::vector<Order> orders = options.orders;
  if (options.graphMode == ir::GraphMode::kNoUpdate) orders = {Order::kProgram};
  for (const Order order : orders) {
    auto one = std::make_unique<OrderPlanner>();
    one->order = order;
    ir::Expected<ir::Graph> arranged = arrangeGraph(graph, order);
    if (!arranged) return arranged.takeError();
    one->graph = std::move(*arranged);
    ir::Expected<planner::Problem> problem =
        planner::makeProblem(one->graph, target, costs, options.allowed, options.limits,
                             options.pins, options.graphMode);
    if (!problem) return problem.takeError();
    one->problem.emplace(std::move(*problem));
    one->problem->pinnedRows = options.pinnedRows;
    ir::Expected<planner::Planner> planner = planner::Planner::make(*one->problem);
    if (!planner) return planner.takeError();
    one->planner.emplace(std::move(*planner));
    made.orders_.push_back(std::move(one));
  }
  return made;
}

ir::Expected<PlannedStep> StepPlanner::plan(Bytes budget) {
  const OrderPlanner* chosen = nullptr;
  std::optional<planner::PlanResult> best;
  std::optional<ir::PlanError> infeasible;
  std::optional<Nanoseconds> bound;
  std::string scope;
  for (const auto& one : orders_) {
    scope += (scope.empty() ? "" : ",") + std::string(orderName(one->order));
    ir::Expected<planner::PlanResult> result = one->planner->plan(budget);
    if (!result) {
      ir::PlanError payload = ir::takePayload(result.takeError());
      if (payload.code() != ir::ErrorCode::kInfeasible) return ir::makeError(std::move(payload));
      infeasible = moreUseful(std::move(infeasible), std::move(payload));
      continue;
    }
    // The published bound holds for every order considered, so it is the smallest of theirs.
    bound = bound ? std::min(*bound, result->bound) : result->bound;
    if (best && !isBetter(*result, *best)) continue;
    best = std::move(*result);
    chosen = one.get();
  }
  if (!best) return ir::makeError(std::move(*infeasible));
  ir::Expected<ir::Schedule> schedule =
      lowerTimetable(chosen->graph, *target_, best->timetable, budget, graphMode_);
  if (!schedule) return schedule.takeError();
  best->bound = *bound;
  schedule->predicted.bound = *bound;
  return PlannedStep{.order = chosen->order,
                     .graph = chosen->graph,
                     .schedule = std::move(*schedule),
                     .result = std::move(*best),
                     .boundScope = std::move(scope)};
}

ir::Expected<PlannedStep> planStep(const ir::Graph& graph, const ir::Target& target,
                                   const ir::CostTable& costs, const PlanStepOptions& options) {
  ir::Expected<StepPlanner> planner = StepPlanner::make(graph, target, costs, options);
  if (!planner) return planner.takeError();
  return planner->plan(options.budget);
}

}  // namespace stowage::passes
