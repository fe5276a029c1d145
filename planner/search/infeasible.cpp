// SPDX-License-Identifier: Apache-2.0
#include "planner/search/infeasible.h"

#include <algorithm>
#include <utility>

#include "ir/base/format_apart.h"
#include "planner/report/explain.h"

namespace stowage::planner {

namespace {

constexpr size_t kMostPinsTried = 8;  // one by one

/// A problem like another one, with tables of its own.
class Variant {
 public:
  explicit Variant(Problem problem) : problem_(std::move(problem)), table_(problem_) {
    ir::Expected<LimitedFrontier> made = LimitedFrontier::make(table_);
    if (!made) {
      llvm::consumeError(made.takeError());
      return;
    }
    frontier_ = std::move(*made);
  }
  const KnownPlan* findBest(int64_t budget) {
    return frontier_ ? frontier_->findBest(budget) : nullptr;
  }

 private:
  Problem problem_;
  GapTable table_;
  std::optional<LimitedFrontier> frontier_;
};

ir::PlanError hostInfeasible(const GapTable& table, int64_t budget, const LeastHost& need) {
  const Bytes limit = table.problem().limits.host;
  ir::Infeasible infeasible{
      .budget = limit, .smallestBudget = Bytes(need.bytes), .peakNode = "", .holders = {}};
  infeasible.space = "host";
  infeasible.lacksDevice = budget == kUnlimited;
  infeasible.holders = findHostHolders(table, need.plan->actions, Bytes(need.plan->prefetchLimit));
  const auto [given, needed] = formatApart(limit, Bytes(need.bytes));
  const std::string where = infeasible.lacksDevice
                                ? "no schedule of any budget fits "
                                : "no schedule fits " + formatBytes(Bytes(budget)) + " with ";
  return ir::PlanError(
             ir::ErrorCode::kInfeasible,
             where + given + " of host memory, expected at least " + needed + " on the host")
      .because(std::move(infeasible));
}

ir::Expected<ir::PlanError> deviceInfeasible(const GapTable& table, int64_t budget,
                                             const LowestPlan& lowest) {
  ir::Infeasible infeasible{
      .budget = Bytes(budget), .smallestBudget = Bytes(lowest.budget), .peakNode = ""};
  ir::Expected<PeakHolders> peak = findPeakHolders(table, lowest.plan->actions);
  if (!peak) return peak.takeError();
  std::string where;
  if (peak->node.isValid()) {
    infeasible.peakNode = table.problem().graph.describeNode(peak->node);
    where = ": at node " + infeasible.peakNode + ", " + formatBytes(peak->bytes) +
            " are on the device at least";
    if (peak->beside.value() > 0)
      where += ", " + formatBytes(peak->beside) + " of them beside what it uses";
  }
  infeasible.holders = std::move(peak->holders);
  infeasible.groups = std::move(peak->groups);
  const std::string most = infeasible.groups.empty()
                               ? ""
                               : "; the most there: " + ir::describeGroup(infeasible.groups[0]);
  const auto [given, needed] = formatApart(Bytes(budget), Bytes(lowest.budget));
  return ir::PlanError(ir::ErrorCode::kInfeasible, "no schedule fits " + given + where +
                                                       ", expected a budget of at least " + needed +
                                                       most)
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

ir::Error explainInfeasible(const GapTable& table, LimitedFrontier& frontier, int64_t budget,
                            int64_t hostOfUse) {
  const Problem& problem = table.problem();
  LeastHost need;
  LowestPlan lowest;
  if (frontier.isLimited()) need = frontier.findLeastHost(budget, hostOfUse);
  if (need.plan == nullptr) lowest = frontier.findLowest();
  // When no plan at all keeps to the host's limit, the host is what is missing in any case.
  const bool lacksBoth = frontier.isLimited() && lowest.plan == nullptr && need.plan == nullptr;
  if (lacksBoth) need = frontier.findLeastHost(kUnlimited);
  if (need.plan != nullptr) {
    ir::PlanError error = hostInfeasible(table, lacksBoth ? kUnlimited : budget, need);
    if (need.wasEnded) error.note("the time limit ended the search: less of the host may do");
    namePins(problem, budget, error);
    return ir::makeError(std::move(error));
  }
  if (lowest.plan == nullptr) lowest = {&frontier.keepAll(), frontier.keepAll().peak};
  ir::Expected<ir::PlanError> error = deviceInfeasible(table, budget, lowest);
  if (!error) return error.takeError();
  namePins(problem, budget, *error);
  return ir::makeError(std::move(*error));
}

}  // namespace stowage::planner
