// SPDX-License-Identifier: Apache-2.0
#include "planner/frontier.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace stowage::planner {

namespace {

constexpr int kGridBudgets = 48;
constexpr int kShrinks = 4;  // attempts to get the addresses below the budget

// Parts of the time that a byte spends on both links, in permille, up to which it is rather made
// again.
constexpr int64_t kPriceLevels[] = {0, 30, 125, 350, 1000, 3000, 1'000'000};

int64_t linkTimePerMebibyte(const ir::LinkModel& links) {
  const Bytes mebibyte(int64_t{1} << 20);
  return transferTime(mebibyte, links.deviceToHost.bandwidth).value() +
         transferTime(mebibyte, links.hostToDevice.bandwidth).value();
}

std::vector<int64_t> makeGrid(int64_t lowest, int64_t highest, int64_t align) {
  std::vector<int64_t> grid;
  const double ratio =
      static_cast<double>(highest) / static_cast<double>(std::max<int64_t>(lowest, 1));
  for (int i = 0; i < kGridBudgets; ++i) {
    const double share = static_cast<double>(i) / (kGridBudgets - 1);
    const double bytes = static_cast<double>(std::max<int64_t>(lowest, 1)) * std::pow(ratio, share);
    const int64_t rounded = roundUp(Bytes(static_cast<int64_t>(bytes)), align).value();
    if (grid.empty() || rounded > grid.back()) grid.push_back(rounded);
  }
  if (grid.back() < highest) grid.push_back(highest);
  return grid;
}

}  // namespace

ir::Expected<Frontier> Frontier::make(const GapTable& table) {
  ir::Expected<FixedActions> fixed = fixActions(table);
  if (!fixed) return fixed.takeError();
  ir::Expected<ActionChooser> chooser = ActionChooser::make(table, std::move(*fixed));
  if (!chooser) return chooser.takeError();
  const int64_t unlimited = INT64_MAX / 4;
  ir::Expected<Timetable> timetable =
      evaluateActions(table, chooser->fixedActions(), unlimited, PlacementEffort::kBestOrder);
  if (!timetable) return timetable.takeError();
  KnownPlan keepAll{.height = timetable->deviceHeight.value(),
                    .hostHeight = timetable->hostHeight.value(),
                    .time = timetable->stepTime.value(),
                    .budget = unlimited,
                    .actions = chooser->fixedActions()};
  return Frontier(table, std::move(*chooser), std::move(keepAll));
}

Frontier::Frontier(const GapTable& table, ActionChooser chooser, KnownPlan keepAll)
    : table_(&table), solver_(table), chooser_(std::move(chooser)), keepAll_(std::move(keepAll)) {
  const int64_t lowest = solver_.smallestBudget();
  grid_ = makeGrid(lowest, std::max(lowest, keepAll_.height), table.problem().target.alignBytes);
  pools_.resize(grid_.size());
}

std::optional<KnownPlan> Frontier::tryRule(const ChoiceRule& rule, int64_t budget,
                                           const Pool& known) const {
  Actions actions = chooser_.choose(rule);
  const int64_t guard = std::min(rule.target, budget);
  const bool isKnown = std::any_of(known.begin(), known.end(), [&](const KnownPlan& plan) {
    return plan.budget == guard && plan.actions == actions;
  });
  if (isKnown) return std::nullopt;
  ir::Expected<Timetable> timetable =
      evaluateActions(*table_, actions, guard, PlacementEffort::kBestOrder);
  if (!timetable) {
    llvm::consumeError(timetable.takeError());
    return std::nullopt;
  }
  return KnownPlan{.height = timetable->deviceHeight.value(),
                   .hostHeight = timetable->hostHeight.value(),
                   .time = timetable->stepTime.value(),
                   .budget = guard,
                   .actions = std::move(actions)};
}

bool Frontier::keepsToHost(const KnownPlan& plan) const {
  return plan.hostHeight <= table_->problem().limits.host.value();
}

// Each price level once, with targets that shrink by what the addresses need beyond the bytes.
Frontier::Pool Frontier::search(int64_t budget) const {
  Pool found;
  const int64_t bound = this->bound(budget);
  const int64_t perMebibyte = linkTimePerMebibyte(table_->problem().costs.links);
  for (const int64_t level : kPriceLevels) {
    const int64_t hostLimit = table_->problem().limits.host.value();
    ChoiceRule rule{
        .target = budget, .hostTarget = hostLimit, .recomputePrice = perMebibyte / 1000 * level};
    for (int i = 0; i < kShrinks; ++i) {
      std::optional<KnownPlan> plan = tryRule(rule, budget, found);
      if (!plan) break;
      const int64_t excess = plan->height - budget;
      const int64_t hostExcess = plan->hostHeight - hostLimit;
      const int64_t time = plan->time;
      assert((excess > 0 || time >= bound) && "no schedule is faster than the bound");
      found.push_back(std::move(*plan));
      const bool fits = excess <= 0 && hostExcess <= 0;
      if (fits && time <= bound) return found;
      if (fits) break;
      rule.target -= std::max<int64_t>(excess, 0);
      rule.hostTarget -= std::max<int64_t>(hostExcess, 0);
    }
  }
  return found;
}

const Frontier::Pool& Frontier::pool(size_t index) {
  if (!pools_[index]) pools_[index] = search(grid_[index]);
  return *pools_[index];
}

size_t Frontier::firstAbove(int64_t budget) const {
  return static_cast<size_t>(std::upper_bound(grid_.begin(), grid_.end(), budget) - grid_.begin());
}

const KnownPlan* Frontier::findBest(int64_t budget) {
  const KnownPlan* best = nullptr;
  const auto consider = [&](const KnownPlan& plan) {
    if (plan.height > budget || !keepsToHost(plan)) return;
    const auto isBetter = [](const KnownPlan& a, const KnownPlan& b) {
      return std::pair(a.time, a.height) < std::pair(b.time, b.height);
    };
    if (best == nullptr || isBetter(plan, *best)) best = &plan;
  };
  consider(keepAll_);
  const size_t last = std::min(firstAbove(budget), grid_.size() - 1);
  for (size_t i = last + 1; i-- > 0;) {
    if (best != nullptr && bound(grid_[i]) >= best->time) break;
    for (const KnownPlan& plan : pool(i)) consider(plan);
  }
  return best;
}

// The lowest plan of the lowest pools; a pool further up answers only for budgets that are not
// below the grid budget before its own.
const KnownPlan* Frontier::findLowest() {
  const KnownPlan* lowest = keepsToHost(keepAll_) ? &keepAll_ : nullptr;
  for (size_t i = 0; i < grid_.size(); ++i) {
    if (i > 0 && lowest != nullptr && grid_[i - 1] >= lowest->height) break;
    for (const KnownPlan& plan : pool(i)) {
      const bool mayAnswer = keepsToHost(plan) && i <= firstAbove(plan.height);
      if (mayAnswer && (lowest == nullptr || plan.height < lowest->height)) lowest = &plan;
    }
  }
  return lowest;
}

std::vector<const KnownPlan*> Frontier::all() {
  std::vector<const KnownPlan*> plans;
  const auto add = [&](const KnownPlan& plan) {
    if (keepsToHost(plan)) plans.push_back(&plan);
  };
  add(keepAll_);
  for (size_t i = 0; i < grid_.size(); ++i) {
    for (const KnownPlan& plan : pool(i)) add(plan);
  }
  std::sort(plans.begin(), plans.end(), [](const KnownPlan* a, const KnownPlan* b) {
    return std::pair(a->height, a->time) < std::pair(b->height, b->time);
  });
  std::vector<const KnownPlan*> rising;
  for (const KnownPlan* plan : plans) {
    if (rising.empty() || plan->time < rising.back()->time) rising.push_back(plan);
  }
  std::reverse(rising.begin(), rising.end());
  return rising;
}

}  // namespace stowage::planner
