// SPDX-License-Identifier: Apache-2.0
#include "planner/refusal.h"

#include <algorithm>
#include <utility>

#include "ir/format_apart.h"
#include "planner/explain.h"

namespace stowage::planner {

namespace {

constexpr int kHostRungs = 12;        // host limits tried between what is too little and what does
constexpr size_t kMostPinsTried = 8;  // one by one

/// A problem like another one, with tables of its own.
class Variant {
 public:
  explicit Variant(Problem problem) : problem_(std::move(problem)), table_(problem_) {
    ir::Expected<Frontier> made = Frontier::make(table_);
    if (!made) {
      llvm::consumeError(made.takeError());
      return;
    }
    frontier_ = std::move(*made);
  }
  const GapTable& table() const { return table_; }
  const KnownPlan* findBest(int64_t budget) {
    return frontier_ ? frontier_->findBest(budget) : nullptr;
  }

 private:
  Problem problem_;
  GapTable table_;
  std::optional<Frontier> frontier_;
};

Problem withHost(const Problem& problem, int64_t bytes) {
  Problem other = problem;
  other.limits.host = Bytes(bytes);
  return other;
}

/// A host limit with which the budget can be kept, and what then lies on the host.
struct HostNeed {
  int64_t bytes = 0;
  Actions actions;
  int64_t target = 0;
};

// Halves the distance between what is too little and what does: each limit is tried itself, so a
// plan for the one that is named exists.
std::optional<HostNeed> findHostNeed(const Problem& problem, int64_t budget) {
  Variant unlimited(withHost(problem, INT64_MAX / 4));
  const KnownPlan* best = unlimited.findBest(budget);
  if (best == nullptr) return std::nullopt;
  HostNeed need{.bytes = best->hostHeight, .actions = best->actions, .target = best->prefetch};
  int64_t tooLittle = problem.limits.host.value();
  const int64_t align = problem.target.alignBytes;
  for (int i = 0; i < kHostRungs && tooLittle + align < need.bytes; ++i) {
    const int64_t between = tooLittle + (need.bytes - tooLittle) / 2 / align * align;
    if (between <= tooLittle) break;
    Variant tried(withHost(problem, between));
    const KnownPlan* plan = tried.findBest(budget);
    if (plan == nullptr) {
      tooLittle = between;
    } else {
      need = {.bytes = plan->hostHeight, .actions = plan->actions, .target = plan->prefetch};
    }
  }
  return need;
}

ir::PlanError refuseHost(const GapTable& table, int64_t budget, const HostNeed& need) {
  const Bytes limit = table.problem().limits.host;
  ir::Infeasible infeasible{
      .budget = limit, .smallestBudget = Bytes(need.bytes), .peakNode = "", .holders = {}};
  infeasible.space = "host";
  infeasible.holders = findHostHolders(table, need.actions, need.target);
  const auto [given, needed] = formatApart(limit, Bytes(need.bytes));
  return ir::PlanError(ir::ErrorCode::kInfeasible,
                       "no schedule fits " + formatBytes(Bytes(budget)) + " with " + given +
                           " of host memory, expected at least " + needed + " on the host")
      .because(std::move(infeasible));
}

ir::Expected<ir::PlanError> refuseDevice(const GapTable& table, int64_t budget,
                                         const LowestPlan& lowest) {
  ir::Infeasible infeasible{
      .budget = Bytes(budget), .smallestBudget = Bytes(lowest.budget), .peakNode = ""};
  ir::Expected<PeakHolders> peak = findPeakHolders(table, lowest.plan->actions);
  if (!peak) return peak.takeError();
  std::string where;
  if (peak->node.isValid()) {
    infeasible.peakNode = table.problem().graph.describeNode(peak->node);
    where = ": node " + infeasible.peakNode + " needs " + formatBytes(peak->bytes) + " at once";
  }
  infeasible.holders = std::move(peak->holders);
  const auto [given, needed] = formatApart(Bytes(budget), Bytes(lowest.budget));
  return ir::PlanError(ir::ErrorCode::kInfeasible, "no schedule fits " + given + where +
                                                       ", expected a budget of at least " + needed)
      .because(std::move(infeasible));
}

bool fitsWithout(const Problem& problem, size_t first, size_t count, int64_t budget) {
  Problem other = problem;
  const auto begin = other.pins.begin() + static_cast<int64_t>(first);
  other.pins.erase(begin, begin + static_cast<int64_t>(count));
  Variant variant(std::move(other));
  return variant.findBest(budget) != nullptr;
}

// The pin without which the budget can be kept, or all of them when only that helps.
void namePins(const Problem& problem, int64_t budget, ir::PlanError& error) {
  const size_t count = problem.pins.size();
  for (size_t i = 0; i < std::min(count, kMostPinsTried) && count > 1; ++i) {
    if (!fitsWithout(problem, i, 1, budget)) continue;
    error.note("without the pin '" + describePin(problem.pins[i]) + "' it fits");
    return;
  }
  if (count > 0 && fitsWithout(problem, 0, count, budget)) {
    std::string names;
    for (const Pin& pin : problem.pins) {
      names += (names.empty() ? "'" : ", '") + describePin(pin) + "'";
    }
    error.note(std::string("without the pin") + (count > 1 ? "s " : " ") + names + " it fits");
    return;
  }
  if (problem.pinnedRows.empty()) return;
  Problem other = problem;
  other.pins.clear();
  other.pinnedRows.clear();
  if (Variant(std::move(other)).findBest(budget) == nullptr) return;
  error.note("without the " + std::to_string(problem.pinnedRows.size()) +
             " pinned decisions of the plan it fits");
}

}  // namespace

ir::Error refuse(const GapTable& table, Frontier& frontier, int64_t budget) {
  const Problem& problem = table.problem();
  LowestPlan lowest = frontier.findLowest();
  const bool isLimited = problem.limits.host < Bytes(INT64_MAX / 4);
  std::optional<HostNeed> need;
  if (isLimited) need = findHostNeed(problem, budget);
  // When no plan at all keeps to the host's limit, the host is what is missing in any case.
  if (isLimited && !need && lowest.plan == nullptr) need = findHostNeed(problem, INT64_MAX / 4);
  if (need) {
    ir::PlanError error = refuseHost(table, budget, *need);
    namePins(problem, budget, error);
    return ir::makeError(std::move(error));
  }
  if (lowest.plan == nullptr) lowest = {&frontier.keepAll(), frontier.keepAll().height};
  ir::Expected<ir::PlanError> error = refuseDevice(table, budget, lowest);
  if (!error) return error.takeError();
  namePins(problem, budget, *error);
  return ir::makeError(std::move(*error));
}

}  // namespace stowage::planner
