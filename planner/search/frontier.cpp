// SPDX-License-Identifier: Apache-2.0
#include "planner/search/frontier.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "planner/search/host_chain.h"
#include "planner/search/in_parallel.h"
#include "planner/search/shrink_to_fit.h"

namespace stowage::planner {

namespace {

constexpr int kGridBudgets = 189;
constexpr size_t kMainEvery = 4;  // grid budgets: there walks are tried too
constexpr size_t kMainEveryWhenLarge = 8;
constexpr int64_t kInexactPart = 512;
constexpr size_t kQuickPools = 2;
constexpr int kShrinks = 64;  // evaluations to find out how low the lowest plan goes
constexpr int kShrinksWhenLarge = 12;
constexpr int kMostShrunk = 4;  // plans, one out of another

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
  ir::Expected<BudgetSearch> search = BudgetSearch::make(table);
  if (!search) return search.takeError();
  return Frontier(std::make_unique<BudgetSearch>(std::move(*search)));
}

Frontier::Frontier(std::unique_ptr<BudgetSearch> search) : search_(std::move(search)) {
  const int64_t lowest = search_->solver().smallestBudget();
  const int64_t highest = std::max(lowest, keepAll().peak);
  grid_ = makeGrid(lowest, highest, search_->table().problem().target.alignBytes);
  mainEvery_ = search_->isLarge() ? kMainEveryWhenLarge : kMainEvery;
  pools_.resize(grid_.size());
  bounds_.resize(grid_.size());
  estimates_.resize(grid_.size());
}

void Frontier::setWatch(SearchWatch* watch, bool tells) {
  watch_ = watch;
  tells_ = tells && watch != nullptr;
}

const Pool& Frontier::pool(size_t index) {
  if (pools_[index]) return *pools_[index];
  Pool found = search_->run({.budget = grid_[index], .walks = isMain(index)});
  const int64_t least = estimate(index);
  llvm::erase_if(found, [&](const KnownPlan& plan) { return plan.time < least; });
  pools_[index] = std::move(found);
  return *pools_[index];
}

size_t Frontier::firstAbove(int64_t budget) const {
  return static_cast<size_t>(std::upper_bound(grid_.begin(), grid_.end(), budget) - grid_.begin());
}

bool Frontier::isMain(size_t index) const {
  return index % mainEvery_ == 0 || index + 1 == grid_.size();
}

size_t Frontier::mainFrom(size_t index) const {
  return std::min((index + mainEvery_ - 1) / mainEvery_ * mainEvery_, grid_.size() - 1);
}

std::vector<size_t> Frontier::mainDownFrom(size_t last) const {
  std::vector<size_t> indices;
  for (size_t i = last + 1; i-- > 0;) {
    if (isMain(i)) indices.push_back(i);
  }
  return indices;
}

std::vector<size_t> Frontier::betweenDownFrom(size_t last) const {
  std::vector<size_t> indices;
  if (!isMain(last)) indices.push_back(last);
  for (size_t i = last; i > 0 && !isMain(i - 1); --i) indices.push_back(i - 1);
  return indices;
}

// Equally fast: what moves less leaves the links to others and depends less on estimates.
void Frontier::consider(const KnownPlan& plan, int64_t budget, const KnownPlan*& best) {
  if (plan.peak > budget) return;
  if (best == nullptr || isBetter(plan, *best)) best = &plan;
}

// Where the flow finds no way, the next grid budget's counts: it is no higher than it should be.
int64_t Frontier::estimate(size_t index) {
  size_t known = index;
  std::optional<int64_t> found;
  while (known < grid_.size() && !found) {
    found = estimates_[known] ? estimates_[known] : search_->estimate(grid_[known]);
    if (!found) ++known;
  }
  for (size_t i = index; i <= known && i < grid_.size(); ++i) estimates_[i] = found.value_or(0);
  return *estimates_[index];
}

// What the flow expects is exact up to what it pays for moving less.
int64_t Frontier::leastOfPools(size_t index) {
  const int64_t expected = estimate(index);
  if (!bounds_[index]) bounds_[index] = search_->bound(grid_[index]);
  return std::max(expected - expected / kInexactPart, *bounds_[index]);
}

int64_t Frontier::leastTime(int64_t budget) {
  const int64_t bound = search_->bound(budget);
  if (budget >= keepAll().peak) return bound;
  return std::max(bound, leastOfPools(mainFrom(firstAbove(budget))));
}

void Frontier::makePools(llvm::ArrayRef<size_t> indices) {
  std::vector<size_t> missing;
  for (const size_t i : indices) {
    if (pools_[i]) continue;
    missing.push_back(i);
    estimate(i);  // may also note those of others, so not side by side
  }
  inParallel(missing.size(), [&](size_t i) { pool(missing[i]); });
}

void Frontier::considerPools(llvm::ArrayRef<size_t> indices, const Wanted& wanted,
                             const KnownPlan*& best) {
  const auto isHopeless = [&](size_t index) {
    const int64_t least = best != nullptr ? std::min(best->time, wanted.slowest) : wanted.slowest;
    return least < INT64_MAX && leastOfPools(index) >= least;
  };
  for (size_t i = 0; i < indices.size(); ++i) {
    if (isHopeless(indices[i])) break;
    const bool hasPlan = best != nullptr && best->time < wanted.slowest;
    if (endsEarly(watch_, hasPlan)) break;
    if (!pools_[indices[i]]) {
      // Most questions are answered by the first pools.
      size_t end = std::min(i + std::clamp<size_t>(i, 1, coreCount()), indices.size());
      while (isHopeless(indices[end - 1])) --end;
      makePools(indices.slice(i, end - i));
    }
    for (const KnownPlan& plan : pool(indices[i])) {
      if (plan.time >= wanted.fastest) consider(plan, wanted.budget, best);
    }
    const bool isNews = tells_ && watch_ != nullptr && best != nullptr;
    if (isNews && best->time < wanted.slowest) watch_->tell(best->time);
  }
}

const KnownPlan* Frontier::findInMainPools(size_t last, int64_t budget, int64_t slowest) {
  const KnownPlan* best = nullptr;
  consider(keepAll(), budget, best);
  considerPools(mainDownFrom(last), {.budget = budget, .slowest = slowest}, best);
  return best != nullptr && best->time < slowest ? best : nullptr;
}

// Every larger budget may be answered by what the main pools know for the next main one, so what
// counts between them is no faster than that.
const KnownPlan* Frontier::findInPools(int64_t budget, int64_t slowest) {
  const size_t last = std::min(firstAbove(budget), grid_.size() - 1);
  const size_t next = mainFrom(last);
  const KnownPlan* best = findInMainPools(next, budget, slowest);
  const KnownPlan* above = findInMainPools(next, grid_[next], slowest);
  if (above == nullptr || (best != nullptr && best->time <= above->time)) return best;
  considerPools(betweenDownFrom(last),
                {.budget = budget, .slowest = slowest, .fastest = above->time}, best);
  return best != nullptr && best->time < slowest ? best : nullptr;
}

const KnownPlan* Frontier::findQuickly(int64_t budget) {
  const KnownPlan* best = nullptr;
  consider(keepAll(), budget, best);
  if (best != nullptr) return best;
  const std::vector<size_t> indices = mainDownFrom(mainFrom(firstAbove(budget)));
  const auto next = llvm::ArrayRef(indices).take_front(kQuickPools);
  makePools(next);
  for (const size_t i : next) {
    for (const KnownPlan& plan : pool(i)) consider(plan, budget, best);
  }
  return best;
}

bool Frontier::fitsMadePools(int64_t budget) const {
  return llvm::any_of(mainDownFrom(mainFrom(firstAbove(budget))), [&](size_t i) {
    return pools_[i] &&
           llvm::any_of(*pools_[i], [&](const KnownPlan& plan) { return plan.peak <= budget; });
  });
}

const KnownPlan* Frontier::findBest(int64_t budget, int64_t slowest) {
  const KnownPlan* best = findInPools(budget, slowest);
  // What is below the pools is slower than what fits in them.
  if (best != nullptr || leastTime(budget) >= slowest || fitsMadePools(budget)) return best;
  if (endsEarly(watch_, false)) return nullptr;
  for (const KnownPlan& plan : lowest()) consider(plan, budget, best);
  return best != nullptr && best->time < slowest ? best : nullptr;
}

// A main pool is looked at for budgets from the main one before its own on, one between them from
// the grid budget before its own on; a plan in it is an answer from there or from its own peak on,
// whichever is larger.
std::optional<LowestPlan> Frontier::findLowestInPools() {
  const WatchPause pause(watch_);
  std::optional<LowestPlan> lowest;
  const auto consider = [&](const KnownPlan& plan, int64_t from) {
    const int64_t budget = std::max(plan.peak, from);
    if (!lowest || budget < lowest->budget) lowest = {&plan, budget};
  };
  consider(keepAll(), 0);
  std::vector<size_t> indices = mainDownFrom(grid_.size() - 1);
  std::reverse(indices.begin(), indices.end());
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t from = i > 0 ? grid_[indices[i - 1]] : 0;
    if (from >= lowest->budget) break;
    if (!pools_[indices[i]]) {
      makePools(llvm::ArrayRef(indices).slice(i).take_front(std::clamp<size_t>(i, 1, coreCount())));
    }
    for (const KnownPlan& plan : pool(indices[i])) consider(plan, from);
    if (lowest->budget > grid_[indices[i]]) continue;
    const int64_t fastest = findInMainPools(indices[i], grid_[indices[i]], INT64_MAX)->time;
    for (size_t k = i > 0 ? indices[i - 1] + 1 : 1; k < indices[i]; ++k) {
      if (grid_[k - 1] >= lowest->budget) break;
      for (const KnownPlan& plan : pool(k)) {
        if (plan.time >= fastest) consider(plan, grid_[k - 1]);
      }
    }
  }
  return lowest;
}

// What is shrunk is no faster than the answer at the pools' smallest budget, so it changes
// nothing from there on. An answer has fewer transfers then, and may go lower again.
const Pool& Frontier::lowest() {
  if (lowest_) return *lowest_;
  const WatchPause pause(watch_);
  lowest_.emplace();
  const std::optional<LowestPlan> first = findLowestInPools();
  if (!first) return *lowest_;
  const int evaluations = search_->isLarge() ? kShrinksWhenLarge : kShrinks;
  KnownPlan answer = *findInPools(first->budget);
  lowest_->push_back(*first->plan);
  for (int i = 0; i < kMostShrunk; ++i) {
    answer = search_->settle(answer, i == 0 ? first->budget : answer.peak, kUnlimited);
    std::vector<KnownPlan> lower = shrinkToFit(search_->table(), answer, evaluations);
    if (lower.empty()) break;
    answer = lower.back();
    std::move(lower.begin(), lower.end(), std::back_inserter(*lowest_));
  }
  for (KnownPlan& plan : shrinkToFit(search_->table(), *first->plan, evaluations))
    lowest_->push_back(std::move(plan));
  std::sort(lowest_->begin(), lowest_->end(), [](const KnownPlan& a, const KnownPlan& b) {
    return std::pair(a.peak, b.time) > std::pair(b.peak, a.time);
  });
  return *lowest_;
}

LowestPlan Frontier::findLowest() {
  if (lowest().empty()) return {};
  const KnownPlan& plan = lowest().back();
  return {&plan, plan.peak};
}

std::vector<const KnownPlan*> Frontier::all() {
  std::vector<size_t> indices(grid_.size());
  std::iota(indices.begin(), indices.end(), size_t{0});
  makePools(indices);
  std::vector<const KnownPlan*> plans = {&keepAll()};
  for (const size_t i : indices) {
    int64_t fastest = 0;
    if (!isMain(i)) {
      const KnownPlan* above = findInMainPools(mainFrom(i), grid_[mainFrom(i)], INT64_MAX);
      if (above == nullptr) continue;
      fastest = above->time;
    }
    for (const KnownPlan& plan : pool(i)) {
      if (plan.time >= fastest) plans.push_back(&plan);
    }
  }
  for (const KnownPlan& plan : lowest()) plans.push_back(&plan);
  return plans;
}

}  // namespace stowage::planner
