// SPDX-License-Identifier: Apache-2.0
#include "passes/plan_step.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/schedule/fingerprint.h"
#include "passes/lower.h"
#include "passes/normalise/order_by_layer.h"
#include "planner/evaluate/timing.h"
#include "planner/targets/arranged_costs.h"

namespace stowage::passes {

namespace {

/// How far what was asked for is from a plan: with more host memory alone it fits; a larger budget
/// is needed; both.
int distance(const ir::Infeasible& infeasible) {
  if (infeasible.lacksDevice) return 2;
  return infeasible.space == "host" ? 0 : 1;
}

/// The more useful of two infeasible errors: the nearer one, else the one that names fewer bytes.
ir::PlanError moreUseful(std::optional<ir::PlanError> known, ir::PlanError other) {
  if (!known) return other;
  if (!other.infeasible() || !known->infeasible()) return std::move(*known);
  const auto usefulness = [](const ir::PlanError& error) {
    return std::pair(distance(*error.infeasible()), error.infeasible()->smallestBudget);
  };
  return usefulness(other) < usefulness(*known) ? std::move(other) : std::move(*known);
}

/// The bytes that a refusal for want of host memory alone names: only less is of use. Else no
/// limit.
Bytes hostOfUse(const std::optional<ir::PlanError>& refusal) {
  const auto& known = refusal ? refusal->infeasible() : std::nullopt;
  const bool lacksHostAlone =
      known && known->space == ir::spaceName(ir::Space::kHost) && !known->lacksDevice;
  return lacksHostAlone ? known->smallestBudget : Bytes(INT64_MAX);
}

/// The one of `orders` in which gradients are there first: the host then has the most time. What is
/// deferred to the next step is no update of this one.
Order orderBesideHost(llvm::ArrayRef<Order> orders) {
  for (const Order order : {Order::kByLayer, Order::kHoisted}) {
    if (llvm::is_contained(orders, order)) return order;
  }
  return Order::kProgram;
}

/// Does by-layer order differ from the hoisted one?
ir::Expected<bool> changesByLayer(const ir::Graph& graph) {
  PassState state;
  state.graph = graph;
  ir::Expected<PassReport> report = OrderByLayer().run(state);
  if (!report) return report.takeError();
  return report->changed;
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
    if (graph.node(node).onHost) {
      return ir::makeError(ir::ErrorCode::kInfeasible, "a CUDA graph cannot hold node " +
                                                           graph.describeNode(node) +
                                                           ", which runs on the host (rule V25)");
    }
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

const ir::CostTable& costsOf(const PlannedStep& planned, const ir::CostTable& given) {
  return planned.costs ? *planned.costs : given;
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
  int64_t hostUpdates = 0;
  bool mayLack = false;  // the step can be planned without it
  ir::Graph graph;
  std::string fingerprint;
  std::shared_ptr<const ir::CostTable> costs;  // of row blocks, or with updates on the host
  int64_t estimatedCosts = 0;
  std::optional<planner::Problem> problem;
  /// Nothing: another variant has the same graph, or pins do not fit this one.
  std::optional<planner::Planner> planner;
};

/// What is known of one budget so far.
struct StepPlanner::Search {
  Bytes budget;
  planner::SearchWatch* watch = nullptr;
  std::optional<Nanoseconds> slowest;  // only faster plans are of use
  Variant* quick = nullptr;            // has a plan that is just faster
  const Variant* chosen = nullptr;
  std::optional<planner::PlanResult> best;
  std::optional<ir::PlanError> infeasible;
  bool wasEnded = false;
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
  // A recorded step has its deferred updates in it, also when nothing is pending.
  if (options.graphMode != ir::GraphMode::kNone) llvm::erase_value(orders, Order::kDeferred);
  if (orders.empty()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "no order of nodes is left, expected at least one in `orders` that a step "
                         "can be recorded in");
  }
  if (orders.size() > 1 && llvm::is_contained(orders, Order::kByLayer)) {
    ir::Expected<bool> isLayered = changesByLayer(graph);
    if (!isLayered) return isLayered.takeError();
    if (!*isLayered) llvm::erase_value(orders, Order::kByLayer);
  }
  std::vector<int64_t> rowBlocks = {1};
  if (options.pinnedRows.empty()) {
    ir::Expected<std::vector<int64_t>> found = findRowBlocks(graph, options.rowBlocks);
    if (!found) return found.takeError();
    rowBlocks.insert(rowBlocks.end(), found->begin(), found->end());
  }
  const bool mayStay = options.hostUpdates.empty() || !options.mustUpdateOnHost;
  for (const int64_t blocks : mayStay ? rowBlocks : std::vector<int64_t>()) {
    for (const Order order : orders) {
      if (ir::Error error = made.addVariant(order, blocks, 0)) return error;
    }
  }
  if (options.graphMode != ir::GraphMode::kNone || !options.pinnedRows.empty()) return made;
  const Order order = orderBesideHost(orders);
  for (const int64_t share : options.hostUpdates) {
    for (const int64_t blocks : rowBlocks) {
      if (ir::Error error = made.addVariant(order, blocks, share)) return error;
    }
  }
  return made;
}

ir::Error StepPlanner::addVariant(Order order, int64_t rowBlocks, int64_t hostUpdates) {
  auto variant = std::make_unique<Variant>();
  variant->order = order;
  variant->rowBlocks = rowBlocks;
  variant->hostUpdates = hostUpdates;
  variant->mayLack = rowBlocks > 1 || (hostUpdates > 0 && !source_->options.mustUpdateOnHost);
  if (ir::Error error = prepare(*variant)) return error;
  variants_.push_back(std::move(variant));
  return ir::success();
}

ir::Error StepPlanner::prepare(Variant& variant) {
  const Source& source = *source_;
  ir::Expected<ir::Graph> arranged =
      arrangeGraph(source.graph, variant.order, variant.rowBlocks, variant.hostUpdates);
  if (!arranged) return arranged.takeError();
  variant.graph = std::move(*arranged);
  variant.fingerprint = ir::fingerprint(variant.graph);
  const bool isKnown = llvm::any_of(variants_, [&](const auto& other) {
    return other->planner && other->fingerprint == variant.fingerprint;
  });
  if (isKnown) return ir::success();
  if (variant.rowBlocks > 1 || variant.hostUpdates > 0) {
    planner::ArrangedCosts costs =
        planner::findArrangedCosts(variant.graph, source.target, source.costs);
    variant.costs = std::make_shared<const ir::CostTable>(std::move(costs.table));
    variant.estimatedCosts = costs.estimated;
  }
  const PlanStepOptions& options = source.options;
  ir::Expected<planner::Problem> problem = planner::makeProblem(
      variant.graph, source.target, variant.costs ? *variant.costs : source.costs, options.allowed,
      options.limits, options.pins, options.graphMode);
  if (!problem) return withoutVariant(variant, problem.takeError());
  variant.problem.emplace(std::move(*problem));
  variant.problem->pinnedRows = options.pinnedRows;
  ir::Expected<planner::Planner> planner = planner::Planner::make(*variant.problem);
  if (!planner) return withoutVariant(variant, planner.takeError());
  variant.planner.emplace(std::move(*planner));
  return ir::success();
}

/// What is pinned as captured may not be there, or not be possible, in another arrangement.
ir::Error StepPlanner::withoutVariant(const Variant& variant, ir::Error error) {
  ir::PlanError found = ir::takePayload(std::move(error));
  const bool isPin = variant.mayLack && found.code() == ir::ErrorCode::kInvalidArgument;
  return isPin ? ir::success() : ir::makeError(std::move(found));
}

/// What speaks for a graph before it is planned.
struct StepPlanner::Prospect {
  Variant* variant = nullptr;
  Nanoseconds least;  // no plan is faster
  planner::LowerBound bound;
};

std::vector<StepPlanner::Prospect> StepPlanner::findProspects(Bytes budget) {
  std::vector<Prospect> prospects;
  for (const auto& variant : variants_) {
    if (!variant->planner) continue;
    prospects.push_back({.variant = variant.get(),
                         .least = variant->planner->leastTime(budget),
                         .bound = variant->planner->bound(budget)});
  }
  std::stable_sort(prospects.begin(), prospects.end(), [](const Prospect& a, const Prospect& b) {
    return std::pair(a.least, a.bound.smallestBudget) < std::pair(b.least, b.bound.smallestBudget);
  });
  return prospects;
}

Nanoseconds StepPlanner::leastBound(llvm::ArrayRef<Prospect> prospects) {
  Nanoseconds least = prospects.front().bound.stepTime;
  for (const Prospect& prospect : prospects) least = std::min(least, prospect.bound.stepTime);
  return least;
}

/// A graph that is left out has no faster plan for this budget, nor for a smaller one.
bool StepPlanner::isOfUse(const Prospect& prospect, const Search& search) {
  const Bytes smallest = prospect.bound.smallestBudget;
  if (search.slowest) return smallest <= search.budget && prospect.least < *search.slowest;
  // Of what does not fit, only what may need less than is known is asked how much it needs.
  const auto& known = search.infeasible ? search.infeasible->infeasible() : std::nullopt;
  if (known && known->space == ir::spaceName(ir::Space::kDevice))
    return smallest <= search.budget || smallest < known->smallestBudget;
  return prospect.variant->planner->leastHost(search.budget) < hostOfUse(search.infeasible);
}

ir::Error StepPlanner::tryVariant(Variant& variant, Search& search) {
  planner::Planner& planner = *variant.planner;
  planner.setWatch(search.watch);
  std::optional<planner::PlanResult> found;
  if (search.slowest) {
    ir::Expected<std::optional<planner::PlanResult>> faster =
        planner.planFaster(search.budget, *search.slowest);
    planner.setWatch(nullptr);
    if (!faster) return faster.takeError();
    found = std::move(*faster);
  } else {
    ir::Expected<planner::PlanResult> result =
        planner.plan(search.budget, hostOfUse(search.infeasible));
    planner.setWatch(nullptr);
    if (result) {
      found = std::move(*result);
    } else {
      ir::PlanError payload = ir::takePayload(result.takeError());
      if (payload.code() != ir::ErrorCode::kInfeasible) return ir::makeError(std::move(payload));
      search.infeasible = moreUseful(std::move(search.infeasible), std::move(payload));
    }
  }
  if (!found) return ir::success();
  search.slowest = found->timetable.stepTime;
  search.best = std::move(found);
  search.chosen = &variant;
  search.watch->setAnswer(true);
  search.watch->tell(search.slowest->value());
  return ir::success();
}

// One graph's plans may all be slow, so that its search would be long without the others' times.
void StepPlanner::findSlowest(llvm::ArrayRef<Prospect> prospects, Search& search) {
  for (const Prospect& prospect : prospects) {
    if (prospect.bound.smallestBudget > search.budget || !isOfUse(prospect, search)) continue;
    const std::optional<Nanoseconds> time = prospect.variant->planner->quickTime(search.budget);
    if (!time) continue;
    const Nanoseconds slower = *time + Nanoseconds(1);
    if (search.slowest && *search.slowest <= slower) continue;
    search.slowest = slower;
    search.quick = prospect.variant;
  }
}

std::string StepPlanner::orders() const {
  std::string names;
  for (const auto& variant : variants_) {
    const bool isUsual = variant->order == Order::kProgram || variant->order == Order::kHoisted;
    if (variant->rowBlocks > 1 || variant->hostUpdates > 0 || (!isUsual && !variant->planner))
      continue;
    names += (names.empty() ? "" : ",") + std::string(orderName(variant->order));
  }
  return names;
}

ir::Error StepPlanner::tryVariants(llvm::ArrayRef<Prospect> prospects, Search& search) const {
  const PlanStepOptions& options = source_->options;
  planner::SearchWatch watch(options.isOver, [&](int64_t stepTime) {
    if (options.found) options.found(Nanoseconds(stepTime), leastBound(prospects));
  });
  search.watch = &watch;
  watch.setAnswer(search.quick != nullptr);
  for (const Prospect& prospect : prospects) {
    if (!isOfUse(prospect, search)) continue;
    if (watch.ends(search.best.has_value())) break;
    if (ir::Error error = tryVariant(*prospect.variant, search)) return error;
  }
  watch.setAnswer(false);
  if (!search.best && search.quick != nullptr) {
    if (ir::Error error = tryVariant(*search.quick, search)) return error;
  }
  search.wasEnded = watch.wasEnded();
  return ir::success();
}

ir::Expected<PlannedStep> StepPlanner::plan(Bytes budget) {
  const std::vector<Prospect> prospects = findProspects(budget);
  Search search{.budget = budget};
  findSlowest(prospects, search);
  if (ir::Error error = tryVariants(prospects, search)) return error;
  if (!search.best && !search.infeasible) {
    // What was found quickly is no answer.
    search = {.budget = budget};
    if (ir::Error error = tryVariants(prospects, search)) return error;
  }
  if (!search.best) return ir::makeError(std::move(*search.infeasible));
  const Variant& chosen = *search.chosen;
  ir::Expected<ir::Schedule> schedule = lowerTimetable(
      chosen.graph, source_->target, search.best->timetable, budget, source_->options.graphMode);
  if (!schedule) return schedule.takeError();
  // The published bound holds for all orders of the chosen row blocks and share of updates on the
  // host: kernels of others take other times.
  for (const Prospect& prospect : prospects) {
    const Variant& other = *prospect.variant;
    if (other.rowBlocks != chosen.rowBlocks || other.hostUpdates != chosen.hostUpdates) continue;
    search.best->bound = std::min(search.best->bound, prospect.bound.stepTime);
  }
  schedule->predicted.bound = search.best->bound;
  return PlannedStep{
      .order = chosen.order,
      .rowBlocks = chosen.rowBlocks,
      .hostUpdates = chosen.hostUpdates,
      .graph = chosen.graph,
      .schedule = std::move(*schedule),
      .result = std::move(*search.best),
      .boundScope = orders() + scopeBesideOrders(chosen.rowBlocks, chosen.hostUpdates),
      .costs = chosen.costs,
      .estimatedCosts = chosen.estimatedCosts,
      .wasEnded = search.wasEnded};
}

ir::Expected<PlannedStep> planStep(const ir::Graph& graph, const ir::Target& target,
                                   const ir::CostTable& costs, const PlanStepOptions& options) {
  ir::Expected<StepPlanner> planner = StepPlanner::make(graph, target, costs, options);
  if (!planner) return planner.takeError();
  return planner->plan(options.budget);
}

}  // namespace stowage::passes
