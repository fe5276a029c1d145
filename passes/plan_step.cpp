// SPDX-License-Identifier: Apache-2.0
#include "passes/plan_step.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "passes/lower.h"
#include "passes/normalise/block_rows.h"
#include "passes/normalise/hoist_updates.h"
#include "planner/bound/lower_bound.h"
#include "planner/evaluate/timing.h"
#include "planner/targets/row_block_costs.h"

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

std::string scopeOfRowBlocks(int64_t rowBlocks) {
  return rowBlocks > 1 ? ",row-blocks=" + std::to_string(rowBlocks) : "";
}

const ir::CostTable& costsOf(const PlannedStep& planned, const ir::CostTable& given) {
  return planned.costs ? *planned.costs : given;
}

ir::Expected<ir::Graph> arrangeGraph(const ir::Graph& graph, Order order, int64_t rowBlocks) {
  PassState state;
  state.graph = graph;
  ir::Expected<PassReport> blocked = BlockRows(BlockRowsOptions{rowBlocks}).run(state);
  if (!blocked) return blocked.takeError();
  if (order == Order::kProgram) return std::move(state.graph);
  ir::Expected<PassReport> report = HoistUpdates().run(state);
  if (!report) return report.takeError();
  return std::move(state.graph);
}

ir::Expected<std::vector<int64_t>> findRowBlocks(const ir::Graph& graph,
                                                 const std::vector<int64_t>& wanted) {
  std::vector<int64_t> sorted = wanted;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> found;
  size_t nodes = graph.nodes().size();
  for (const int64_t blocks : sorted) {
    ir::Expected<ir::Graph> blocked = arrangeGraph(graph, Order::kProgram, blocks);
    if (!blocked) return blocked.takeError();
    // More blocks are more nodes.
    if (blocked->nodes().size() == nodes) continue;
    nodes = blocked->nodes().size();
    found.push_back(blocks);
  }
  return found;
}

/// What all variants are made from.
struct StepPlanner::Source {
  const ir::Graph& graph;
  const ir::Target& target;
  const ir::CostTable& costs;
  PlanStepOptions options;
};

struct StepPlanner::Variant {
  Order order = Order::kProgram;
  int64_t rowBlocks = 1;
  bool isPrepared = false;
  bool isPossible = true;  // false: pins name what is not there in row blocks
  ir::Graph graph;
  std::shared_ptr<const ir::CostTable> costs;  // of row blocks
  int64_t estimatedCosts = 0;
  Nanoseconds kernels;  // of its nodes, each once
  std::optional<planner::Problem> problem;
  std::optional<planner::Planner> planner;
};

/// The best plan so far for one budget, and what speaks against others.
struct StepPlanner::Search {
  const Variant* chosen = nullptr;
  std::optional<planner::PlanResult> best;
  std::optional<ir::PlanError> infeasible;
  std::map<int64_t, Nanoseconds> bounds;  // by row blocks: the smallest of their orders
};

StepPlanner::StepPlanner() = default;
StepPlanner::StepPlanner(StepPlanner&&) noexcept = default;
StepPlanner& StepPlanner::operator=(StepPlanner&&) noexcept = default;
StepPlanner::~StepPlanner() = default;

ir::Expected<StepPlanner> StepPlanner::make(const ir::Graph& graph, const ir::Target& target,
                                            const ir::CostTable& costs,
                                            const PlanStepOptions& options) {
  StepPlanner made;
  made.source_.reset(
      new Source{.graph = graph, .target = target, .costs = costs, .options = options});
  if (ir::Error error = checkGraphMode(graph, options.graphMode)) return error;
  std::vector<Order> orders = options.orders;
  if (options.graphMode == ir::GraphMode::kNoUpdate) orders = {Order::kProgram};
  std::vector<int64_t> rowBlocks = {1};
  if (options.pinnedRows.empty()) {
    ir::Expected<std::vector<int64_t>> found = findRowBlocks(graph, options.rowBlocks);
    if (!found) return found.takeError();
    rowBlocks.insert(rowBlocks.end(), found->begin(), found->end());
  }
  for (const int64_t blocks : rowBlocks) {
    for (const Order order : orders) {
      auto variant = std::make_unique<Variant>();
      variant->order = order;
      variant->rowBlocks = blocks;
      if (blocks == 1) {
        if (ir::Error error = made.prepare(*variant)) return error;
      }
      made.variants_.push_back(std::move(variant));
    }
  }
  return made;
}

ir::Error StepPlanner::prepare(Variant& variant) {
  if (variant.isPrepared) return ir::success();
  variant.isPrepared = true;
  const Source& source = *source_;
  ir::Expected<ir::Graph> arranged = arrangeGraph(source.graph, variant.order, variant.rowBlocks);
  if (!arranged) return arranged.takeError();
  variant.graph = std::move(*arranged);
  if (variant.rowBlocks > 1) {
    planner::RowBlockCosts costs =
        planner::findRowBlockCosts(variant.graph, source.target, source.costs);
    variant.costs = std::make_shared<const ir::CostTable>(std::move(costs.table));
    variant.estimatedCosts = costs.estimated;
  }
  const PlanStepOptions& options = source.options;
  ir::Expected<planner::Problem> problem = planner::makeProblem(
      variant.graph, source.target, variant.costs ? *variant.costs : source.costs, options.allowed,
      options.limits, options.pins, options.graphMode);
  if (!problem) {
    ir::PlanError error = ir::takePayload(problem.takeError());
    variant.isPossible = variant.rowBlocks == 1 || error.code() != ir::ErrorCode::kInvalidArgument;
    return variant.isPossible ? ir::makeError(std::move(error)) : ir::success();
  }
  variant.problem.emplace(std::move(*problem));
  variant.problem->pinnedRows = options.pinnedRows;
  for (const ir::OpCost& cost : variant.problem->costs.nodes) variant.kernels += cost.work;
  return ir::success();
}

ir::Error StepPlanner::tryVariant(Variant& variant, Bytes budget, Search& search) {
  if (!variant.planner) {
    ir::Expected<planner::Planner> planner = planner::Planner::make(*variant.problem);
    if (!planner) return planner.takeError();
    variant.planner.emplace(std::move(*planner));
  }
  ir::Expected<planner::PlanResult> result = variant.planner->plan(budget);
  if (!result) {
    ir::PlanError payload = ir::takePayload(result.takeError());
    if (payload.code() != ir::ErrorCode::kInfeasible) return ir::makeError(std::move(payload));
    search.infeasible = moreUseful(std::move(search.infeasible), std::move(payload));
    return ir::success();
  }
  const auto [bound, isFirst] = search.bounds.try_emplace(variant.rowBlocks, result->bound);
  bound->second = std::min(bound->second, result->bound);
  if (search.best && !isBetter(*result, *search.best)) return ir::success();
  search.best = std::move(*result);
  search.chosen = &variant;
  return ir::success();
}

/// With row blocks only what may be faster is planned, the most promising first. A skipped graph is
/// not faster for this budget, so no smaller budget has a faster plan of it either.
ir::Error StepPlanner::tryRowBlocks(Bytes budget, Search& search) {
  const auto isHopeless = [&](Nanoseconds bound) {
    return search.best && bound >= search.best->timetable.stepTime;
  };
  // Of what does not fit, only what may need less than is known is asked for its smallest budget.
  const auto needsMore = [&](Bytes smallest) {
    if (search.best || smallest <= budget) return smallest > budget;
    const auto& known = search.infeasible ? search.infeasible->infeasible() : std::nullopt;
    return known && known->space == ir::spaceName(ir::Space::kDevice) &&
           smallest >= known->smallestBudget;
  };
  std::vector<std::pair<planner::LowerBound, Variant*>> promising;
  for (const auto& variant : variants_) {
    if (variant->rowBlocks == 1) continue;
    if (ir::Error error = prepare(*variant)) return error;
    if (!variant->isPossible || isHopeless(variant->kernels)) continue;
    const planner::LowerBound bound = planner::computeLowerBound(*variant->problem, budget);
    promising.emplace_back(bound, variant.get());
  }
  std::stable_sort(promising.begin(), promising.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.stepTime, a.first.smallestBudget) <
           std::pair(b.first.stepTime, b.first.smallestBudget);
  });
  for (const auto& [bound, variant] : promising) {
    if (isHopeless(bound.stepTime) || needsMore(bound.smallestBudget)) continue;
    if (ir::Error error = tryVariant(*variant, budget, search)) return error;
  }
  return ir::success();
}

ir::Expected<PlannedStep> StepPlanner::plan(Bytes budget) {
  Search search;
  std::string scope;
  for (const auto& variant : variants_) {
    if (variant->rowBlocks > 1) continue;
    if (ir::Error error = tryVariant(*variant, budget, search)) return error;
    scope += (scope.empty() ? "" : ",") + std::string(orderName(variant->order));
  }
  if (ir::Error error = tryRowBlocks(budget, search)) return error;
  if (!search.best) return ir::makeError(std::move(*search.infeasible));
  const Variant& chosen = *search.chosen;
  ir::Expected<ir::Schedule> schedule = lowerTimetable(
      chosen.graph, source_->target, search.best->timetable, budget, source_->options.graphMode);
  if (!schedule) return schedule.takeError();
  // The published bound is about the chosen row blocks: it holds for all of their orders, since
  // those that were skipped have a larger one than the plan's time.
  search.best->bound = search.bounds.at(chosen.rowBlocks);
  schedule->predicted.bound = search.best->bound;
  return PlannedStep{.order = chosen.order,
                     .rowBlocks = chosen.rowBlocks,
                     .graph = chosen.graph,
                     .schedule = std::move(*schedule),
                     .result = std::move(*search.best),
                     .boundScope = scope + scopeOfRowBlocks(chosen.rowBlocks),
                     .costs = chosen.costs,
                     .estimatedCosts = chosen.estimatedCosts};
}

ir::Expected<PlannedStep> planStep(const ir::Graph& graph, const ir::Target& target,
                                   const ir::CostTable& costs, const PlanStepOptions& options) {
  ir::Expected<StepPlanner> planner = StepPlanner::make(graph, target, costs, options);
  if (!planner) return planner.takeError();
  return planner->plan(options.budget);
}

}  // namespace stowage::passes
