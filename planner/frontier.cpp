// SPDX-License-Identifier: Apache-2.0
#include "planner/frontier.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include "planner/give_back.h"
#include "planner/squeeze.h"

namespace stowage::planner {

namespace {

constexpr int kGridBudgets = 48;
constexpr size_t kLarge = 5000;  // nodes from which fewer levels are tried, less often
constexpr size_t kLevelsWhenLarge = 4;
constexpr int kAttemptsWhenLarge = 3;
constexpr int kImprovements = 4;  // evaluations to keep more of what the best of a pool moves
constexpr int kImprovementsWhenLarge = 2;
constexpr int kGiveBacks = 24;  // evaluations to give back what an answer need not move
constexpr int kGiveBacksWhenLarge = 8;
constexpr int kSqueezes = 64;  // evaluations to find out how low the lowest plan goes
constexpr int kSqueezesWhenLarge = 12;
constexpr int kMostSqueezed = 4;      // plans, one out of another
constexpr int kAttempts = 4;          // to bring the addresses just below the budget
constexpr int64_t kSlackPart = 64;    // of the budget that may stay unused
constexpr int64_t kHopelessPart = 4;  // of the budget that bytes may be over before it is given up

// Parts of the time that a byte spends on both links, in permille, up to which it is rather made
// again. The likely ones first, for a level that starts slower than what is found is left at once.
constexpr int64_t kPriceLevels[] = {350, 0, 1000, -1, 125, 3000, 30};

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
  Tried tried = tryActions(table, chooser->fixed().actions, unlimited, {});
  std::optional<KnownPlan>& keepAll = tried.plan;
  assert(keepAll && "the fixed actions are possible");
  return Frontier(table, std::move(*chooser), std::move(*keepAll));
}

Frontier::Frontier(const GapTable& table, ActionChooser chooser, KnownPlan keepAll)
    : table_(&table), solver_(table), chooser_(std::move(chooser)), keepAll_(std::move(keepAll)) {
  const int64_t lowest = solver_.smallestBudget();
  grid_ = makeGrid(lowest, std::max(lowest, keepAll_.height), table.problem().target.alignBytes);
  pools_.resize(grid_.size());
}

Tried Frontier::tryRule(const ChoiceRule& rule, const Useful& useful, const Pool& known) const {
  Choice choice = chooser_.choose(rule);
  const int64_t budget = useful.height;
  // Where the bytes alone are far too many, a lower target will not do either.
  if (choice.bytes > budget + budget / kHopelessPart) return {.plan = {}, .isTooSlow = true};
  const bool isKnown = std::any_of(known.begin(), known.end(), [&](const KnownPlan& plan) {
    return plan.prefetch == budget && plan.actions == choice.actions;
  });
  if (isKnown) return {.plan = {}, .isTooSlow = true};
  return tryActions(*table_, std::move(choice.actions), budget, useful);
}

bool Frontier::isLarge() const { return table_->nodeCount() > kLarge; }

bool Frontier::keepsToHost(const KnownPlan& plan) const { return plan.hostHeight <= hostLimit(); }

// Each price level once, with targets that shrink by what the addresses need beyond the bytes, and
// grow again when that was too much.
Frontier::Pool Frontier::search(int64_t budget) const {
  Pool found;
  const int64_t bound = this->bound(budget);
  const int64_t perMebibyte = linkTimePerMebibyte(table_->problem().costs.links);
  int64_t fastest = INT64_MAX;  // of those that fit
  const llvm::ArrayRef<int64_t> all(kPriceLevels);
  for (const int64_t level : isLarge() ? all.take_front(kLevelsWhenLarge) : all) {
    tryLevel(perMebibyte / 1000 * level, budget, fastest, found);
    if (fastest <= bound) break;
  }
  if (fastest > bound) improve(budget, found);
  assert(fastest >= bound && "no schedule is faster than the bound");
  return found;
}

// Rules give up more than they must where bytes come back in the same step.
void Frontier::improve(int64_t budget, Pool& found) const {
  const KnownPlan* best = nullptr;
  for (const KnownPlan& plan : found) {
    const bool fits = plan.height <= budget && keepsToHost(plan);
    if (fits && (best == nullptr || plan.time < best->time)) best = &plan;
  }
  if (best == nullptr) return;
  const int evaluations = isLarge() ? kImprovementsWhenLarge : kImprovements;
  KnownPlan better = giveBack(
      *table_, chooser_.fixed(), *best,
      {.height = budget, .hostHeight = hostLimit(), .sameTime = false, .evaluations = evaluations});
  if (better.time < best->time || better.moved < best->moved) found.push_back(std::move(better));
}

void Frontier::tryLevel(int64_t price, int64_t budget, int64_t& fastest, Pool& found) const {
  ChoiceRule rule{.target = budget, .hostTarget = hostLimit(), .recomputePrice = price};
  struct Attempt {
    int64_t target = 0;
    int64_t height = 0;
  };
  std::optional<Attempt> low;   // fits
  std::optional<Attempt> high;  // does not
  const int attempts = isLarge() ? kAttemptsWhenLarge : kAttempts;
  for (int i = 0; i < attempts; ++i) {
    Tried tried = tryRule(rule, {.height = budget, .time = fastest}, found);
    // A lower target does not make it faster.
    if (tried.isTooSlow || (!tried.plan && tried.height <= budget)) return;
    const Attempt attempt{rule.target, tried.height};
    int64_t hostExcess = 0;
    if (tried.plan) {
      hostExcess = tried.plan->hostHeight - hostLimit();
      const bool fits = attempt.height <= budget && hostExcess <= 0;
      if (fits) fastest = tried.plan->time;
      found.push_back(std::move(*tried.plan));
    }
    if (attempt.height > budget && high && attempt.height >= high->height) return;
    if (attempt.height > budget) high = attempt;
    if (attempt.height <= budget) low = attempt;
    if (hostExcess > 0) {
      rule.hostTarget -= hostExcess;
      if (attempt.height <= budget) continue;
    }
    if (!low) {
      rule.target -= attempt.height - budget;
    } else if (high && budget - low->height > budget / kSlackPart) {
      const double share = static_cast<double>(budget - low->height) /
                           static_cast<double>(high->height - low->height);
      rule.target = low->target +
                    static_cast<int64_t>(static_cast<double>(high->target - low->target) * share);
    } else {
      return;
    }
    if (rule.target < solver_.smallestBudget() / 2) return;
  }
}

const Frontier::Pool& Frontier::pool(size_t index) {
  if (!pools_[index]) pools_[index] = search(grid_[index]);
  return *pools_[index];
}

size_t Frontier::firstAbove(int64_t budget) const {
  return static_cast<size_t>(std::upper_bound(grid_.begin(), grid_.end(), budget) - grid_.begin());
}

// Equally fast: what moves less leaves the links to others and depends less on estimates.
bool Frontier::isBetter(const KnownPlan& a, const KnownPlan& b) {
  return std::tie(a.time, a.moved, a.height) < std::tie(b.time, b.moved, b.height);
}

void Frontier::consider(const KnownPlan& plan, int64_t budget, const KnownPlan*& best) const {
  if (plan.height > budget || !keepsToHost(plan)) return;
  if (best == nullptr || isBetter(plan, *best)) best = &plan;
}

const KnownPlan* Frontier::findInPools(int64_t budget) {
  const KnownPlan* best = nullptr;
  consider(keepAll_, budget, best);
  const size_t last = std::min(firstAbove(budget), grid_.size() - 1);
  for (size_t i = last + 1; i-- > 0;) {
    if (best != nullptr && bound(grid_[i]) >= best->time) break;
    for (const KnownPlan& plan : pool(i)) consider(plan, budget, best);
  }
  return best;
}

const KnownPlan* Frontier::findBest(int64_t budget) {
  const KnownPlan* best = findInPools(budget);
  if (best != nullptr) return best;
  for (const KnownPlan& plan : lowest()) consider(plan, budget, best);
  return best;
}

KnownPlan Frontier::settle(const KnownPlan& plan, int64_t budget) const {
  const int evaluations = isLarge() ? kGiveBacksWhenLarge : kGiveBacks;
  return giveBack(
      *table_, chooser_.fixed(), plan,
      {.height = budget, .hostHeight = hostLimit(), .sameTime = true, .evaluations = evaluations});
}

// A pool is looked at for budgets from the grid budget before its own on, so a plan in it is an
// answer from there or from its own height on, whichever is more.
std::optional<LowestPlan> Frontier::findLowestInPools() {
  std::optional<LowestPlan> lowest;
  const auto consider = [&](const KnownPlan& plan, int64_t from) {
    const int64_t budget = std::max(plan.height, from);
    if (keepsToHost(plan) && (!lowest || budget < lowest->budget)) lowest = {&plan, budget};
  };
  consider(keepAll_, 0);
  for (size_t i = 0; i < grid_.size(); ++i) {
    const int64_t from = i > 0 ? grid_[i - 1] : 0;
    if (lowest && from >= lowest->budget) break;
    for (const KnownPlan& plan : pool(i)) consider(plan, from);
  }
  return lowest;
}

// What is squeezed is no faster than the answer at the pools' smallest budget, so it changes
// nothing from there on. An answer gives back what it need not move, which may go lower again.
const Frontier::Pool& Frontier::lowest() {
  if (lowest_) return *lowest_;
  lowest_.emplace();
  const std::optional<LowestPlan> first = findLowestInPools();
  if (!first) return *lowest_;
  const int evaluations = isLarge() ? kSqueezesWhenLarge : kSqueezes;
  const SqueezeGoal goal{.hostHeight = hostLimit(), .evaluations = evaluations};
  KnownPlan answer = *findInPools(first->budget);
  lowest_->push_back(*first->plan);
  for (int i = 0; i < kMostSqueezed; ++i) {
    answer = settle(answer, i == 0 ? first->budget : answer.height);
    std::vector<KnownPlan> lower = squeeze(*table_, answer, goal);
    if (lower.empty()) break;
    answer = lower.back();
    std::move(lower.begin(), lower.end(), std::back_inserter(*lowest_));
  }
  for (KnownPlan& plan : squeeze(*table_, *first->plan, goal)) lowest_->push_back(std::move(plan));
  std::sort(lowest_->begin(), lowest_->end(), [](const KnownPlan& a, const KnownPlan& b) {
    return std::pair(a.height, b.time) > std::pair(b.height, a.time);
  });
  return *lowest_;
}

LowestPlan Frontier::findLowest() {
  if (lowest().empty()) return {};
  const KnownPlan& plan = lowest().back();
  return {&plan, plan.height};
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
  for (const KnownPlan& plan : lowest()) add(plan);
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
