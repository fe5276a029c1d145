// SPDX-License-Identifier: Apache-2.0
#include "planner/search/limited_frontier.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "planner/search/in_parallel.h"

namespace stowage::planner {

namespace {

constexpr int kSlowdowns = 8;  // evaluations to make a plan no faster than another one
constexpr int64_t kSlowdownPart = 4;
constexpr int kMostSettled = 4;  // plans with the least on the host, one out of another

/// The node before the gap may write its result over the gap's storage.
bool mayDieUnderResult(const GapTable& table, const Gap& gap) {
  const Problem& problem = table.problem();
  if (!problem.allowed.inPlaceReuse) return false;
  return llvm::is_contained(table.inPlaceOperands(static_cast<size_t>(gap.begin)), gap.storage);
}

}  // namespace

ir::Expected<LimitedFrontier> LimitedFrontier::make(const GapTable& table) {
  ir::Expected<Frontier> frontier = Frontier::make(table);
  if (!frontier) return frontier.takeError();
  return LimitedFrontier(table, std::move(*frontier));
}

LimitedFrontier::LimitedFrontier(const GapTable& table, Frontier frontier)
    : table_(&table), frontier_(std::move(frontier)) {
  int64_t begin = 0;
  for (const int64_t budget : frontier_.grid()) {
    cells_.push_back({.index = cells_.size(), .begin = begin, .end = budget});
    begin = budget;
  }
  cells_.push_back({.index = cells_.size(), .begin = begin, .end = kUnlimited});
  for (size_t i = 1; i < cells_.size(); ++i) cells_[i].isMain = frontier_.isMain(i - 1);
  findStayingBytes();
  findOwnBytes();
}

void LimitedFrontier::setWatch(SearchWatch* watch) {
  watch_ = watch;
  frontier_.setWatch(watch, !isLimited());
}

// What is needed later and cannot be recomputed is on the device or on the host.
void LimitedFrontier::findStayingBytes() {
  const FixedActions& fixed = frontier_.search().fixed();
  const std::vector<int64_t> loads = computeNodeLoads(*table_, fixed.actions);
  const size_t nodes = loads.size();
  std::vector<int64_t> changes(2 * nodes + 1, 0);  // of what can be recomputed, over two steps
  for (size_t g = 0; g < table_->gaps().size(); ++g) {
    const Gap& gap = table_->gaps()[g];
    if (!gap.live || !gap.mayRecompute || fixed.isFixed[g]) continue;
    // An operand that will be recomputed may already die under the result.
    const int64_t from = mayDieUnderResult(*table_, gap) ? gap.begin : gap.begin + 1;
    if (gap.end <= from) continue;
    changes[static_cast<size_t>(from)] += table_->bytes(gap.storage);
    changes[static_cast<size_t>(gap.end)] -= table_->bytes(gap.storage);
  }
  for (size_t i = 1; i < changes.size(); ++i) changes[i] += changes[i - 1];
  for (size_t i = 0; i < nodes; ++i) {
    stayingBytes_ = std::max(stayingBytes_, loads[i] - changes[i] - changes[nodes + i]);
  }
}

// What a pin sends there for a part of the step does not count: when it is there depends on the
// plan.
void LimitedFrontier::findOwnBytes() {
  ir::Expected<Draft> draft = draftTimetable(*table_, keepAll().actions, keepAll().prefetchLimit);
  assert(draft && "the fixed actions are possible");
  for (size_t i = 0; i < draft->order.hosts.size(); ++i) {
    const ir::TickRange& there = draft->order.hosts[i];
    if (there.end - there.begin < draft->order.period) continue;
    ownBytes_ += table_->bytes(ir::StorageId(i));
  }
}

int64_t LimitedFrontier::hostNeed(int64_t peak) const {
  return std::max(ownBytes_, stayingBytes_ - peak);
}

const std::vector<LimitedFrontier::Answer>& LimitedFrontier::answers(Cell& cell) {
  if (cell.answers) return *cell.answers;
  const WatchPause pause = frontier_.pauseWatch();
  cell.answers.emplace();
  int64_t budget = cell.end - 1;
  while (budget >= cell.begin) {
    const KnownPlan* plan = frontier_.findInPools(budget);
    if (plan == nullptr) break;
    cell.answers->push_back({plan, std::max(plan->peak, cell.begin)});
    budget = plan->peak - 1;
  }
  // Slower ones may have less on the host.
  if (cell.index < frontier_.grid().size() && frontier_.isMain(cell.index)) {
    for (const KnownPlan& plan : frontier_.pool(cell.index)) {
      if (plan.peak < cell.end) {
        cell.answers->push_back({&plan, std::max(plan.peak, cell.begin)});
      }
    }
  }
  return *cell.answers;
}

std::optional<KnownPlan> LimitedFrontier::notFaster(KnownPlan plan, int64_t time,
                                                    int64_t budget) const {
  for (int i = 0; i < kSlowdowns && plan.time < time; ++i) {
    const int64_t prefetchLimit = plan.prefetchLimit - plan.prefetchLimit / kSlowdownPart;
    Tried tried = tryActions(*table_, plan.actions, prefetchLimit, {.peak = budget});
    if (!tried.plan || tried.plan->peak > budget) return std::nullopt;
    plan = std::move(*tried.plan);
  }
  if (plan.time < time) return std::nullopt;
  return plan;
}

KnownPlan LimitedFrontier::lowerHost(KnownPlan plan, int64_t budget) const {
  for (int i = 0; i < kMostSettled && plan.hostPeak > hostNeed(budget); ++i) {
    KnownPlan settled = frontier_.search().settle(plan, budget, plan.hostPeak);
    const bool isLower = settled.hostPeak < plan.hostPeak;
    plan = std::move(settled);
    if (!isLower) break;
  }
  return plan;
}

std::optional<HostChain> LimitedFrontier::makeChain(const Cell& cell,
                                                    const KnownPlan* first) const {
  if (first == nullptr) return std::nullopt;
  std::optional<KnownPlan> last =
      frontier_.search().findLeastHost(cell.begin, hostNeed(cell.begin));
  if (last) last = notFaster(std::move(*last), first->time, cell.begin);
  if (!last || last->hostPeak >= first->hostPeak) last = *first;
  return HostChain(frontier_.search(), cell.begin, *first, lowerHost(std::move(*last), cell.begin));
}

HostChain* LimitedFrontier::chain(Cell& cell) {
  if (!cell.hasChain) makeChains({&cell});
  return cell.chain ? &*cell.chain : nullptr;
}

void LimitedFrontier::makeMainChains(size_t index, size_t count) {
  llvm::SmallVector<Cell*, 8> missing;
  for (size_t i = index + 1; i-- > 0 && missing.size() < count;) {
    Cell& cell = cells_[i];
    if (cell.isMain && !cell.hasChain) missing.push_back(&cell);
  }
  makeChains(missing);
}

void LimitedFrontier::makeChains(llvm::ArrayRef<Cell*> cells) {
  const WatchPause pause = frontier_.pauseWatch();
  std::vector<const KnownPlan*> firsts;
  // Pools are made side by side themselves.
  for (const Cell* cell : cells) firsts.push_back(frontier_.findInPools(cell->begin));
  inParallel(cells.size(), [&](size_t i) {
    cells[i]->chain = makeChain(*cells[i], firsts[i]);
    cells[i]->hasChain = true;
  });
}

const KnownPlan* LimitedFrontier::findBest(int64_t budget, int64_t slowest) {
  if (isLimited() && limit() < std::max(ownBytes_, leastHost(budget))) return nullptr;
  const KnownPlan* best = frontier_.findBest(budget, slowest);
  if (best == nullptr || !isLimited()) return best;
  if (best->hostPeak <= limit()) return best;
  best = findWithin(budget, hasDisk() ? findOnDisk(budget, slowest) : nullptr);
  return best != nullptr && best->time < slowest ? best : nullptr;
}

bool LimitedFrontier::hasDisk() const {
  return table_->problem().allowed.disk && table_->problem().limits.disk > Bytes(0);
}

const LimitedFrontier::Spilled& LimitedFrontier::spilled(const KnownPlan& plan, int64_t budget) {
  const SpillKey key{limit(), table_->problem().limits.disk.value(), budget};
  const auto [at, isNew] = spilled_.try_emplace(key);
  if (isNew) {
    Spilled& made = at->second;
    made.plan = spillToDisk(*table_, frontier_.search().fixed(), plan, made.leastHost);
  }
  return at->second;
}

const KnownPlan* LimitedFrontier::findOnDisk(int64_t budget, int64_t slowest) {
  const KnownPlan* best = nullptr;
  const auto consider = [&](const KnownPlan& base, int64_t from) {
    const std::optional<KnownPlan>& plan = spilled(base, from).plan;
    if (plan && plan->peak <= budget && (best == nullptr || isBetter(*plan, *best))) best = &*plan;
  };
  const auto isTooSlow = [&](int64_t time) {
    return time >= slowest || (best != nullptr && time >= best->time);
  };
  const auto wholeAnswer = [&](int64_t from) {
    const WatchPause pause = frontier_.pauseWatch();
    return frontier_.findInPools(from);
  };
  for (size_t i = frontier_.firstAbove(budget); i-- > 0;) {
    if (!frontier_.isMain(i)) continue;
    const int64_t from = frontier_.grid()[i];
    // What neither the device nor the host holds is on disk; the less budget, the more.
    if (isTooSlow(leastDiskTime(table_->problem(), stayingBytes_ - from - limit()))) return best;
    const KnownPlan* base = wholeAnswer(from);
    if (base == nullptr) break;
    if (isTooSlow(base->time)) return best;
    consider(*base, from);
    if (endsEarly(watch_, best != nullptr)) return best;
  }
  if (endsEarly(watch_, best != nullptr)) return best;
  for (const KnownPlan& plan : frontier_.lowest()) consider(plan, -plan.peak);
  return best;
}

const KnownPlan* LimitedFrontier::findQuickly(int64_t budget) {
  const KnownPlan* best = frontier_.findQuickly(budget);
  return best == nullptr || best->hostPeak > limit() ? nullptr : best;
}

const KnownPlan* LimitedFrontier::findInMainCells(int64_t budget, const KnownPlan* best) {
  const auto consider = [&](const KnownPlan& plan) {
    if (plan.peak > budget || plan.hostPeak > limit()) return;
    if (best == nullptr || isBetter(plan, *best)) best = &plan;
  };
  size_t looked = 0;
  for (size_t i = frontier_.firstAbove(budget) + 1; i-- > 0;) {
    if (endsEarly(watch_, best != nullptr)) return best;
    Cell& cell = cells_[i];
    const int64_t most = std::min(budget, cell.end);
    // No plan of this cell or below is faster than what the host without a limit allows.
    const KnownPlan* free = frontier_.findInPools(most);
    if (free == nullptr) break;
    if (hostNeed(most) > limit() || (best != nullptr && free->time >= best->time)) return best;
    for (const Answer& answer : answers(cell)) {
      if (answer.from <= budget) consider(*answer.plan);
    }
    if (!cell.isMain) continue;
    const KnownPlan* first = frontier_.findInPools(cell.begin);
    const int64_t slowest = best != nullptr ? best->time : INT64_MAX;
    if (first == nullptr || first->time >= slowest) continue;
    // Most questions are answered by the first chains.
    if (!cell.hasChain) makeMainChains(i, std::clamp<size_t>(looked, 1, coreCount()));
    ++looked;
    HostChain* made = chain(cell);
    const KnownPlan* plan = made != nullptr ? made->find(limit(), slowest) : nullptr;
    if (plan != nullptr) consider(*plan);
  }
  if (endsEarly(watch_, best != nullptr)) return best;
  const std::optional<LowestPlan> lowest = frontier_.findLowestInPools();
  const KnownPlan* slow = lowest ? frontier_.findInPools(lowest->budget) : nullptr;
  if (best != nullptr && slow != nullptr && best->time <= slow->time) return best;
  for (const KnownPlan& plan : frontier_.lowest()) consider(plan);
  return best;
}

// What a chain between main cells knows may be missed above. So it counts only where it is no
// faster than what the next main cell has, and where the limit has an answer without it.
const KnownPlan* LimitedFrontier::findWithin(int64_t budget, const KnownPlan* best) {
  best = findInMainCells(budget, best);
  const size_t own = frontier_.firstAbove(budget);
  if (best == nullptr || cells_[own].isMain || own == 0) return best;
  size_t next = own;
  while (!cells_[next].isMain) ++next;
  const KnownPlan* above = findInMainCells(cells_[next].begin, nullptr);
  for (size_t i = own; i > 0 && !cells_[i].isMain; --i) {
    if (endsEarly(watch_, true)) return best;
    if (above == nullptr || best->time <= above->time) return best;
    const KnownPlan* first = frontier_.findInPools(cells_[i].begin);
    if (first == nullptr || first->time >= best->time) continue;
    HostChain* made = chain(cells_[i]);
    if (made == nullptr) continue;
    const KnownPlan* plan = made->find(limit(), best->time, above->time);
    if (plan != nullptr) best = plan;
  }
  return best;
}

LeastHost LimitedFrontier::findLeastHost(int64_t budget, int64_t ofUse) {
  LeastHost least;
  if (frontier_.findBest(budget) == nullptr) return least;
  const auto consider = [&](const KnownPlan& plan) {
    if (plan.peak > budget) return;
    if (least.plan == nullptr || plan.hostPeak < least.bytes) least = {&plan, plan.hostPeak};
  };
  const auto isEnded = [&] { return least.wasEnded = endsEarly(watch_, least.plan != nullptr); };
  // A disk leaves hardly less to others.
  if (hasDisk()) {
    for (const KnownPlan& plan : frontier_.lowest()) {
      if (plan.peak > budget) continue;
      // Nothing known: it does not fit the disk.
      const int64_t host = spilled(plan, -plan.peak).leastHost;
      if (host == INT64_MAX) continue;
      if (least.plan == nullptr || host < least.bytes) least = {&plan, host};
    }
    if (least.plan != nullptr) return least;
  }
  for (size_t i = frontier_.firstAbove(budget) + 1; i-- > 0;) {
    if (isEnded()) return least;
    Cell& cell = cells_[i];
    const int64_t most = std::min(budget, cell.end);
    if (frontier_.findInPools(most) == nullptr) break;
    if (least.plan != nullptr && hostNeed(most) >= std::min(least.bytes, ofUse)) return least;
    for (const Answer& answer : answers(cell)) {
      if (answer.from <= budget) consider(*answer.plan);
    }
    if (!cell.isMain) continue;
    if (!cell.hasChain) makeMainChains(i, coreCount());
    if (const HostChain* made = chain(cell)) consider(made->last());
  }
  if (isEnded()) return least;
  for (const KnownPlan& plan : frontier_.lowest()) consider(plan);
  return least;
}

LowestPlan LimitedFrontier::findLowest() {
  if (!isLimited()) return frontier_.findLowest();
  LowestPlan lowest;
  if (limit() < ownBytes_) return lowest;
  const auto consider = [&](const KnownPlan& plan, int64_t from) {
    if (plan.hostPeak > limit()) return;
    if (lowest.plan == nullptr || from < lowest.budget) lowest = {&plan, from};
  };
  for (const KnownPlan& plan : frontier_.lowest()) {
    consider(plan, plan.peak);
    if (!hasDisk()) continue;
    const std::optional<KnownPlan>& onDisk = spilled(plan, -plan.peak).plan;
    if (onDisk) consider(*onDisk, onDisk->peak);
  }
  for (Cell& cell : cells_) {
    if (lowest.plan != nullptr && cell.begin >= lowest.budget) break;
    if (hostNeed(cell.end) > limit()) continue;
    for (const Answer& answer : answers(cell)) consider(*answer.plan, answer.from);
    if (!cell.isMain) continue;
    if (const HostChain* made = chain(cell)) consider(made->last(), cell.begin);
  }
  return lowest;
}

int64_t LimitedFrontier::findAnswerableHost(int64_t budget, int64_t wanted) {
  size_t index = frontier_.firstAbove(budget);
  int64_t least = INT64_MAX;
  for (const Answer& answer : answers(cells_[index])) {
    if (answer.plan->peak <= budget) least = std::min(least, answer.plan->hostPeak);
  }
  if (least <= wanted) return least;
  while (index > 0 && !cells_[index].isMain) --index;
  const HostChain* made = chain(cells_[index]);
  return made == nullptr ? least : std::min(least, made->last().hostPeak);
}

KnownPlan LimitedFrontier::settle(const KnownPlan& plan, int64_t budget) {
  const BudgetSearch& search = frontier_.search();
  if (plan.diskPeak > 0) return plan;
  KnownPlan settled = search.settle(plan, budget, limit());
  if (!isLimited() || settled.hostPeak >= plan.hostPeak) return settled;
  const int64_t least = std::min(plan.hostPeak, findAnswerableHost(budget, settled.hostPeak));
  return settled.hostPeak >= least ? settled : search.settle(plan, budget, limit(), least);
}

std::vector<const KnownPlan*> LimitedFrontier::all() {
  std::vector<const KnownPlan*> plans;
  if (!isLimited()) {
    plans = frontier_.all();
  } else {
    for (int64_t budget = kUnlimited; const KnownPlan* plan = findBest(budget);) {
      plans.push_back(plan);
      budget = plan->peak - 1;
    }
  }
  std::sort(plans.begin(), plans.end(), [](const KnownPlan* a, const KnownPlan* b) {
    return std::pair(a->peak, a->time) < std::pair(b->peak, b->time);
  });
  std::vector<const KnownPlan*> rising;
  for (const KnownPlan* plan : plans) {
    if (rising.empty() || plan->time < rising.back()->time) rising.push_back(plan);
  }
  std::reverse(rising.begin(), rising.end());
  return rising;
}

}  // namespace stowage::planner
