// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.h"

#include <cassert>
#include <optional>
#include <utility>

#include "planner/search/infeasible.h"
#include "planner/search/limited_frontier.h"

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

// Pins become rows, so that they hold when the plan is edited and planned again.
ir::Error writePins(const GapTable& table, Decisions& decisions) {
  if (table.problem().pins.empty() && table.problem().pinnedRows.empty()) return ir::success();
  ir::Expected<FixedActions> fixed = fixActions(table);
  if (!fixed) return fixed.takeError();
  std::vector<ir::DecisionRow> rows;
  size_t next = 0;
  for (size_t g = 0; g < table.gaps().size(); ++g) {
    const Gap& gap = table.gaps()[g];
    const bool isRow = next < decisions.rows.size() &&
                       decisions.rows[next].storage == gap.storage &&
                       decisions.rows[next].gapBegin == gap.begin;
    const bool isPin = fixed->isPinned[g] && (isRow || gap.mayHost || gap.mayRecompute);
    if (isRow) {
      rows.push_back(std::move(decisions.rows[next++]));
    } else if (isPin) {
      rows.push_back({.storage = gap.storage, .gapBegin = gap.begin, .gapEnd = gap.end});
      rows.back().action = fixed->actions[g];
    }
    if (!isPin) continue;
    rows.back().pinned = true;
    rows.back().why = "pinned";
  }
  decisions.rows = std::move(rows);
  return ir::success();
}

}  // namespace

struct Planner::State {
  explicit State(const Problem& problem) : table(problem) {}
  GapTable table;
  std::optional<LimitedFrontier> frontier;
};

Planner::Planner(std::unique_ptr<State> state) : state_(std::move(state)) {}
Planner::Planner(Planner&&) noexcept = default;
Planner& Planner::operator=(Planner&&) noexcept = default;
Planner::~Planner() = default;

ir::Expected<Planner> Planner::make(const Problem& problem) {
  auto state = std::make_unique<State>(problem);
  ir::Expected<LimitedFrontier> frontier = LimitedFrontier::make(state->table);
  if (!frontier) return frontier.takeError();
  state->frontier = std::move(*frontier);
  return Planner(std::move(state));
}

void Planner::setWatch(SearchWatch* watch) { state_->frontier->setWatch(watch); }

LowerBound Planner::bound(Bytes budget) const {
  const BoundSolver& solver = state_->frontier->solver();
  return {.stepTime = Nanoseconds(solver.bound(budget.value())),
          .smallestBudget = Bytes(solver.smallestBudget()),
          .widestNode = solver.widestNode()};
}

Nanoseconds Planner::leastTime(Bytes budget) {
  return Nanoseconds(state_->frontier->leastTime(budget.value()));
}

Bytes Planner::leastHost(Bytes budget) const {
  return Bytes(state_->frontier->leastHost(budget.value()));
}

std::optional<Nanoseconds> Planner::quickTime(Bytes budget) {
  const KnownPlan* plan = state_->frontier->findQuickly(budget.value());
  if (plan == nullptr) return std::nullopt;
  return Nanoseconds(plan->time);
}

ir::Expected<PlanResult> Planner::plan(Bytes budget, Bytes hostOfUse) {
  LimitedFrontier& frontier = *state_->frontier;
  const KnownPlan* best = frontier.findBest(budget.value());
  if (best == nullptr) {
    return explainInfeasible(state_->table, frontier, budget.value(), hostOfUse.value());
  }
  return answer(*best, budget);
}

ir::Expected<std::optional<PlanResult>> Planner::planFaster(Bytes budget, Nanoseconds slowest) {
  const KnownPlan* best = state_->frontier->findBest(budget.value(), slowest.value());
  if (best == nullptr) return std::nullopt;
  ir::Expected<PlanResult> result = answer(*best, budget);
  if (!result) return result.takeError();
  return std::move(*result);
}

ir::Expected<PlanResult> Planner::answer(const KnownPlan& best, Bytes budget) {
  LimitedFrontier& frontier = *state_->frontier;
  const KnownPlan answer = frontier.settle(best, budget.value());
  ir::Expected<Timetable> timetable =
      evaluateActions(state_->table, answer.actions, answer.prefetchLimit);
  if (!timetable) return timetable.takeError();
  if (ir::Error error = writePins(state_->table, timetable->decisions)) return error;
  PlanResult result{.timetable = std::move(*timetable),
                    .bound = Nanoseconds(frontier.bound(budget.value())),
                    .keepAllPeak = Bytes(frontier.keepAll().peak),
                    .planNeeded = &best != &frontier.keepAll()};
  result.planNeeded = result.planNeeded || !result.timetable.decisions.rows.empty();
  assert(result.timetable.stepTime >= result.bound && "no schedule is faster than the bound");
  return result;
}

std::vector<FrontierPoint> Planner::frontier() {
  std::vector<FrontierPoint> points;
  for (const KnownPlan* plan : state_->frontier->all()) {
    points.push_back({.peak = Bytes(plan->peak),
                      .time = Nanoseconds(plan->time),
                      .decisions = decisionsOf(state_->table, *plan)});
  }
  return points;
}

ir::Expected<PlanResult> plan(const Problem& problem, Bytes budget) {
  ir::Expected<Planner> planner = Planner::make(problem);
  if (!planner) return planner.takeError();
  return planner->plan(budget);
}

ir::Expected<std::vector<FrontierPoint>> computeFrontier(const Problem& problem) {
  ir::Expected<Planner> planner = Planner::make(problem);
  if (!planner) return planner.takeError();
  return planner->frontier();
}

}  // namespace stowage::planner
