// SPDX-License-Identifier: Apache-2.0
#include "planner/search/budget_search.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "planner/search/reduce_transfers.h"

namespace stowage::planner {

namespace {

constexpr size_t kSmall = 500;   // nodes below which walks are always tried
constexpr size_t kLarge = 5000;  // nodes from which fewer levels are tried, less often
constexpr size_t kLevelsWhenLarge = 4;
constexpr int kAttemptsWhenLarge = 3;
constexpr int kImprovements = 4;  // evaluations to keep more of what the best of a pool moves
constexpr int kImprovementsWhenLarge = 2;
constexpr int kReductions = 24;  // evaluations to reduce the transfers of an answer
constexpr int kReductionsWhenLarge = 8;
constexpr int kAttempts = 4;  // to bring the addresses just below the budget
constexpr int kJumps = 1;
constexpr int64_t kNoStallsPart = 1000;  // of the step's time: shorter stalls are none
constexpr int64_t kSlackPart = 64;       // of the budget that may stay unused
constexpr int64_t kHopelessPart = 4;  // of the budget that bytes may be over before it is given up
constexpr int kHostRaises = 10;       // of the host's target, from nothing, until the device fits
constexpr int kHostCuts = 10;         // halvings between what was too little and what did
constexpr int64_t kRaisePart = 16;    // of the budget: the least raise

// Prices up to which a recompute is preferred to a copy, in permille of the time that a byte spends
// on both links. The likely ones come first: a level that starts slower than the best plan so far
// is abandoned at once.
constexpr int64_t kPriceLevels[] = {350, 0, 1000, -1, 125, 3000, 30};

int64_t linkTimePerMebibyte(const ir::LinkModel& links) {
  const Bytes mebibyte(int64_t{1} << 20);
  return transferTime(mebibyte, links.deviceToHost.bandwidth).value() +
         transferTime(mebibyte, links.hostToDevice.bandwidth).value();
}

/// Of each stall for a copy the part that was not `expected` of all. Returns the sum of these
/// parts.
int64_t noteStalls(llvm::ArrayRef<StallAt> stalls, int64_t expected, LostLinkTime& lost) {
  int64_t sum = 0;
  for (const StallAt& stall : stalls) sum += stall.isRanks ? 0 : stall.time.value();
  const int64_t excess = sum - std::max<int64_t>(0, expected);
  if (excess <= 0) return 0;
  for (const StallAt& stall : stalls) {
    if (stall.isRanks) continue;
    (stall.isOut ? lost.out : lost.in)[stall.node.index()] +=
        static_cast<int64_t>(static_cast<__int128>(stall.time.value()) * excess / sum);
  }
  return excess;
}

}  // namespace

ir::Expected<BudgetSearch> BudgetSearch::make(const GapTable& table) {
  ir::Expected<FixedActions> fixed = fixActions(table);
  if (!fixed) return fixed.takeError();
  ir::Expected<ActionChooser> chooser = ActionChooser::make(table, std::move(*fixed));
  if (!chooser) return chooser.takeError();
  Tried tried = tryActions(table, chooser->fixed().actions, kUnlimited, {});
  std::optional<KnownPlan>& keepAll = tried.plan;
  assert(keepAll && "the fixed actions are possible");
  return BudgetSearch(table, std::move(*chooser), std::move(*keepAll));
}

BudgetSearch::BudgetSearch(const GapTable& table, ActionChooser chooser, KnownPlan keepAll)
    : table_(&table),
      solver_(table),
      chooser_(std::move(chooser)),
      flow_(table, chooser_.fixed(), computeNodeLoads(table, chooser_.fixed().actions)),
      keepAll_(std::move(keepAll)) {}

Tried BudgetSearch::tryChoice(Choice choice, const Useful& useful, const Pool& known) const {
  const int64_t budget = useful.peak;
  if (choice.actions.empty()) return {.plan = {}, .isTooSlow = true};
  // Where the bytes alone are far too many, a lower target will not do either.
  if (choice.bytes > budget + budget / kHopelessPart) return {.plan = {}, .isTooSlow = true};
  const bool isKnown = std::any_of(known.begin(), known.end(), [&](const KnownPlan& plan) {
    return plan.prefetchLimit == budget && plan.actions == choice.actions;
  });
  if (isKnown) return {.plan = {}, .isTooSlow = true};
  return tryActions(*table_, std::move(choice.actions), budget, useful);
}

bool BudgetSearch::isSmall() const { return table_->nodeCount() < kSmall; }
bool BudgetSearch::isLarge() const { return table_->nodeCount() > kLarge; }

// Flows find what walks find and more, but in a small step, where what is within a slot matters.
// Each price level once, with targets that shrink by what the addresses need beyond the bytes, and
// grow again when that was too much.
Pool BudgetSearch::run(const SearchGoal& goal) const {
  Pool found;
  const int64_t bound = this->bound(goal.budget);
  const int64_t enough = std::max(bound, goal.fastest);
  const int64_t perMebibyte = linkTimePerMebibyte(table_->problem().costs.links);
  int64_t fastest = goal.slowest;  // of those that fit
  for (const FlowRule& flow : flow_.rules(goal.walks)) {
    if (fastest <= enough || goal.host < kUnlimited) break;
    tryFlow(flow, goal, fastest, found);
  }
  const bool walks = goal.walks && (isSmall() || fastest == goal.slowest);
  const llvm::ArrayRef<int64_t> all(kPriceLevels);
  for (const int64_t level : isLarge() ? all.take_front(kLevelsWhenLarge) : all) {
    if (fastest <= enough || !walks) break;
    const auto choose = [&](int64_t target, int64_t host) {
      return chooser_.choose(
          {.target = target, .hostTarget = host, .recomputePrice = perMebibyte / 1000 * level});
    };
    tryLevel(choose, goal, fastest, found);
  }
  if (fastest > enough) improve(goal, found);
  assert(fastest >= bound && "no schedule is faster than the bound");
  return found;
}

// Rules give up more than they must where bytes come back in the same step.
void BudgetSearch::improve(const SearchGoal& goal, Pool& found) const {
  const KnownPlan* best = nullptr;
  for (const KnownPlan& plan : found) {
    const bool fits = plan.peak <= goal.budget && plan.hostPeak <= goal.host;
    if (fits && plan.time >= goal.fastest && (best == nullptr || plan.time < best->time))
      best = &plan;
  }
  if (best == nullptr) return;
  const int evaluations = isLarge() ? kImprovementsWhenLarge : kImprovements;
  KnownPlan better = reduceTransfers(
      *table_, chooser_.fixed(), *best,
      {.peak = goal.budget, .hostPeak = goal.host, .sameTime = false, .evaluations = evaluations});
  if (better.time < best->time || better.moved < best->moved) found.push_back(std::move(better));
}

// The flow knows how many bytes a link carries, not what a copy has to wait for. Where compute
// waited longer than it expected, the link had less time than it thought; what is asked next allows
// for that.
void BudgetSearch::tryFlow(FlowRule rule, const SearchGoal& goal, int64_t& fastest,
                           Pool& found) const {
  rule.target = goal.budget;
  rule.lost.in.assign(table_->nodeCount(), 0);
  rule.lost.out.assign(table_->nodeCount(), 0);
  const int attempts = isLarge() ? kAttemptsWhenLarge : kAttempts;
  for (int i = 0; i < attempts; ++i) {
    Choice choice = flow_.choose(rule, fastest);
    const int64_t expected = choice.waits;
    Tried tried = tryChoice(std::move(choice), {.peak = goal.budget, .time = fastest}, found);
    const int64_t unused = goal.budget - tried.peak;
    if (tried.isTooSlow || (!tried.plan && unused >= 0)) return;
    if (tried.plan) {
      const int64_t time = tried.plan->time;
      if (unused >= 0 && time >= goal.fastest) fastest = time;
      found.push_back(std::move(*tried.plan));
      const int64_t stalls = noteStalls(tried.stalls, expected, rule.lost);
      if (unused >= 0 && stalls < time / kNoStallsPart) return;
    }
    if (unused < 0) rule.target += unused;
    if (unused > goal.budget / kSlackPart) rule.target += unused / 2;
    if (rule.target < solver_.smallestBudget() / 2) return;
  }
}

void BudgetSearch::tryLevel(ChooseWithin choose, const SearchGoal& goal, int64_t& fastest,
                            Pool& found) const {
  const int64_t budget = goal.budget;
  struct {
    int64_t target, hostTarget;
  } rule{budget, goal.host};
  struct Attempt {
    int64_t target = 0;
    int64_t peak = 0;
  };
  std::optional<Attempt> low;   // fits
  std::optional<Attempt> high;  // does not
  int jumps = 0;
  const int attempts = isLarge() ? kAttemptsWhenLarge : kAttempts;
  for (int i = 0; i < attempts; ++i) {
    Tried tried =
        tryChoice(choose(rule.target, rule.hostTarget), {.peak = budget, .time = fastest}, found);
    // A lower target does not make it faster.
    if (tried.isTooSlow || (!tried.plan && tried.peak <= budget)) return;
    const Attempt attempt{rule.target, tried.peak};
    int64_t hostExcess = 0;
    if (tried.plan) {
      hostExcess = tried.plan->hostPeak - goal.host;
      const bool fits = attempt.peak <= budget && hostExcess <= 0;
      if (fits && tried.plan->time >= goal.fastest) fastest = tried.plan->time;
      found.push_back(std::move(*tried.plan));
    }
    const bool isHigher = attempt.peak > budget && high && attempt.peak >= high->peak;
    // A lower target may have a higher peak once: choices of large storages jump.
    if (isHigher && ++jumps > kJumps) return;
    if (attempt.peak > budget && !isHigher) high = attempt;
    if (attempt.peak <= budget) low = attempt;
    if (hostExcess > 0) {
      rule.hostTarget -= hostExcess;
      if (attempt.peak <= budget) continue;
    }
    if (!low) {
      rule.target -= attempt.peak - budget;
    } else if (high && budget - low->peak > budget / kSlackPart) {
      const double share =
          static_cast<double>(budget - low->peak) / static_cast<double>(high->peak - low->peak);
      rule.target = low->target +
                    static_cast<int64_t>(static_cast<double>(high->target - low->target) * share);
    } else {
      return;
    }
    if (rule.target < solver_.smallestBudget() / 2) return;
  }
}

KnownPlan BudgetSearch::settle(const KnownPlan& plan, int64_t budget, int64_t host,
                               int64_t leastHost) const {
  const int evaluations = isLarge() ? kReductionsWhenLarge : kReductions;
  return reduceTransfers(*table_, chooser_.fixed(), plan,
                         {.peak = budget,
                          .hostPeak = host,
                          .leastHost = leastHost,
                          .sameTime = true,
                          .evaluations = evaluations});
}

std::optional<KnownPlan> BudgetSearch::fitRule(ChoiceRule rule, int64_t host,
                                               int64_t& excess) const {
  const int64_t budget = rule.target;
  for (int i = 0; i < kAttempts && rule.target > 0; ++i) {
    Choice choice = chooser_.choose(rule);
    excess = choice.bytes - rule.target;
    if (excess > 0) return std::nullopt;
    Tried tried = tryActions(*table_, std::move(choice.actions), budget, {.peak = budget});
    excess = tried.peak - budget;
    if (excess > 0) {
      rule.target -= excess;
    } else if (!tried.plan || tried.plan->hostPeak <= host) {
      return std::move(tried.plan);
    } else {
      rule.hostTarget -= tried.plan->hostPeak - host;
    }
  }
  return std::nullopt;
}

// First recomputes whatever they cost, with more of the host until the device fits; then less of
// the host with recomputes at any price that does.
std::optional<KnownPlan> BudgetSearch::findLeastHost(int64_t budget, int64_t need) const {
  constexpr int64_t kAnyPrice = INT64_MAX;
  const int64_t align = table_->problem().target.alignBytes;
  const int64_t perMebibyte = linkTimePerMebibyte(table_->problem().costs.links);
  std::optional<KnownPlan> least;
  int64_t host = need;
  int64_t excess = 0;
  for (int i = 0; i < kHostRaises && !least; ++i) {
    least = fitRule({.target = budget, .hostTarget = host, .recomputePrice = kAnyPrice}, kUnlimited,
                    excess);
    host += roundUp(Bytes(std::max(excess, budget / kRaisePart)), align).value();
  }
  int64_t tooLittle = need - align;
  for (int i = 0; i < kHostCuts && least && tooLittle + align < least->hostPeak; ++i) {
    host = tooLittle + (least->hostPeak - tooLittle) / 2 / align * align;
    std::optional<KnownPlan> less;
    for (const int64_t price : {kAnyPrice, perMebibyte / 2, int64_t{-1}}) {
      const ChoiceRule rule{.target = budget, .hostTarget = host, .recomputePrice = price};
      less = fitRule(rule, host, excess);
      if (less) break;
    }
    if (!less) tooLittle = host;
    if (less) least = std::move(less);
  }
  return least;
}

}  // namespace stowage::planner
