// SPDX-License-Identifier: Apache-2.0
#include "passes/ways_out.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/bound/half_batch.h"
#include "planner/targets/arranged_costs.h"

namespace stowage::passes {

namespace {

using Way = ir::Infeasible::WayOut;

constexpr const char* kDisk = "a disk";
constexpr int64_t kNoticedPart = 20;  // of the smallest budget: half the batch must save that much

struct Action {
  const char* name;
  bool isAllowed;
  void (*allow)(PlanStepOptions& options);
};

ir::Expected<std::vector<Action>> findActions(const ir::Graph& graph,
                                              const PlanStepOptions& options) {
  const bool mayArrange = options.pinnedRows.empty();
  const bool mayReorder = mayArrange && options.graphMode != ir::GraphMode::kNoUpdate;
  std::vector<int64_t> blocks;
  if (mayArrange && options.rowBlocks.empty()) {
    ir::Expected<std::vector<int64_t>> found = findRowBlocks(graph, PlanStepOptions().rowBlocks);
    if (!found) return found.takeError();
    blocks = std::move(*found);
  }
  return std::vector<Action>{
      {"offload", options.allowed.offload, [](PlanStepOptions& o) { o.allowed.offload = true; }},
      {"recompute", options.allowed.recompute,
       [](PlanStepOptions& o) { o.allowed.recompute = true; }},
      {"in-place-reuse", options.allowed.inPlaceReuse,
       [](PlanStepOptions& o) { o.allowed.inPlaceReuse = true; }},
      {"reorder", !mayReorder || llvm::is_contained(options.orders, Order::kHoisted),
       [](PlanStepOptions& o) { o.orders = PlanStepOptions().orders; }},
      {"row-blocks", blocks.empty(),
       [](PlanStepOptions& o) { o.rowBlocks = PlanStepOptions().rowBlocks; }}};
}

/// Nothing: no better than what is known.
std::optional<Way> tryVariation(const RefusedStep& step, const Variation& variation,
                                const ir::Infeasible& known) {
  PlanStepOptions options = variation.options;
  options.isOver = [] { return true; };  // the first plan that fits says as much as the best
  ir::Expected<PlannedStep> planned = planStep(step.graph, step.target, step.costs, options);
  if (planned) {
    Way way{.change = variation.change, .fits = true, .smallestBudget = {}};
    const Bytes disk = planned->result.timetable.diskPeak;
    if (way.change == kDisk) {
      way.change += " of " + std::to_string(disk.value()) + "B (" + formatBytes(disk) + ")";
    }
    return way;
  }
  const ir::PlanError error = ir::takePayload(planned.takeError());
  const auto& other = error.infeasible();
  const bool isLess = other && other->space == known.space &&
                      other->space == ir::spaceName(ir::Space::kDevice) &&
                      other->smallestBudget < known.smallestBudget;
  if (!isLess) return std::nullopt;
  return Way{.change = variation.change, .smallestBudget = other->smallestBudget};
}

/// Of one graph; nothing where there is no batch to halve.
std::optional<planner::HalfBatch> halve(const ir::Graph& graph, const ir::Target& target,
                                        const ir::CostTable& costs,
                                        const PlanStepOptions& options) {
  ir::Expected<planner::Problem> problem =
      planner::makeProblem(graph, target, costs, options.allowed);
  if (problem) return planner::findHalfBatch(*problem);
  llvm::consumeError(problem.takeError());
  return std::nullopt;
}

/// With as many row blocks as are allowed, where those need less.
ir::Expected<std::optional<Way>> tryHalfBatch(const RefusedStep& step,
                                              const ir::Infeasible& known) {
  if (step.isByPolicy) return std::nullopt;
  std::optional<planner::HalfBatch> half = halve(step.graph, step.target, step.costs, step.options);
  if (!half) return std::nullopt;
  ir::Expected<std::vector<int64_t>> blocks = findRowBlocks(step.graph, step.options.rowBlocks);
  if (!blocks) return blocks.takeError();
  if (!blocks->empty()) {
    ir::Expected<ir::Graph> blocked = arrangeGraph(step.graph, Order::kProgram, blocks->back());
    if (!blocked) return blocked.takeError();
    const planner::ArrangedCosts shares =
        planner::findArrangedCosts(*blocked, step.target, step.costs);
    const std::optional<planner::HalfBatch> less =
        halve(*blocked, step.target, shares.table, step.options);
    if (less) half->least = std::min(half->least, less->least);
  }
  const Bytes smallest = known.smallestBudget;
  if (half->least > smallest - Bytes(smallest.value() / kNoticedPart)) return std::nullopt;
  return Way{.change = "half the batch of " + std::to_string(half->batch) + " (two micro-batches)",
             .smallestBudget = half->least,
             .isAtLeast = true};
}

}  // namespace

ir::Expected<std::vector<Variation>> findVariations(const ir::Graph& graph,
                                                    const PlanStepOptions& options) {
  ir::Expected<std::vector<Action>> actions = findActions(graph, options);
  if (!actions) return actions.takeError();
  std::vector<Variation> variations;
  Variation all{.change = "", .options = options};
  for (const Action& action : *actions) {
    if (action.isAllowed) continue;
    variations.push_back({.change = std::string("allow ") + action.name, .options = options});
    action.allow(variations.back().options);
    all.change += (all.change.empty() ? "allow " : ",") + std::string(action.name);
    action.allow(all.options);
  }
  if (options.limits.host < planner::Limits().host) {
    variations.push_back({.change = "no limit of the host", .options = options});
    variations.back().options.limits.host = planner::Limits().host;
    if (variations.size() > 1) all.change += " and no limit of the host";
    all.options.limits.host = planner::Limits().host;
    constexpr Bytes kLargestDisk(INT64_MAX / 4);
    if (options.limits.disk < kLargestDisk && options.graphMode == ir::GraphMode::kNone) {
      variations.push_back({.change = kDisk, .options = options});
      variations.back().options.limits.disk = kLargestDisk;
      variations.back().options.allowed.disk = true;
    }
  }
  if (variations.size() > 1 && !all.change.empty()) variations.push_back(std::move(all));
  return variations;
}

ir::Expected<ir::PlanError> addWaysOut(const RefusedStep& step, ir::PlanError error) {
  if (error.code() != ir::ErrorCode::kInfeasible || !error.infeasible()) return error;
  ir::Infeasible infeasible = *error.infeasible();
  std::string useless;
  for (const Variation& variation : step.variations) {
    const bool isAll = step.variations.size() > 2 && &variation == &step.variations.back();
    const bool isAnswered = llvm::any_of(infeasible.ways, [](const Way& way) { return way.fits; });
    if (isAll && isAnswered) break;
    std::optional<Way> way = tryVariation(step, variation, infeasible);
    if (way) infeasible.ways.push_back(std::move(*way));
    if (!way && !isAll) useless += (useless.empty() ? "" : "; ") + variation.change;
  }
  if (!useless.empty()) error.note("no help by itself: " + useless);
  std::stable_sort(infeasible.ways.begin(), infeasible.ways.end(), [](const Way& a, const Way& b) {
    return std::pair(!a.fits, a.smallestBudget) < std::pair(!b.fits, b.smallestBudget);
  });
  if (infeasible.space == ir::spaceName(ir::Space::kDevice)) {
    ir::Expected<std::optional<Way>> half = tryHalfBatch(step, infeasible);
    if (!half) return half.takeError();
    if (*half) infeasible.ways.push_back(std::move(**half));
  }
  return error.because(std::move(infeasible));
}

}  // namespace stowage::passes
