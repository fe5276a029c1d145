// SPDX-License-Identifier: Apache-2.0
#include "planner/search/host_chain.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stowage::planner {

namespace {

constexpr int kLevels = 8;
constexpr int kLevelsWhenLarge = 4;

}  // namespace

HostChain::HostChain(const BudgetSearch& search, int64_t budget, const KnownPlan& first,
                     KnownPlan last)
    : search_(&search), budget_(budget), last_(std::move(last)) {
  levels_.push_back({.host = first.hostPeak, .plans = {first}, .time = first.time});
}

int HostChain::levelCount() const { return search_->isLarge() ? kLevelsWhenLarge : kLevels; }

int64_t HostChain::hostOf(int level) const {
  const int64_t first = levels_.front().host;
  return first - (first - last_.hostPeak) * level / levelCount();
}

// What is faster than the level above was missed there; it may not come back now.
HostChain::Level HostChain::make(int level) const {
  const Level& above = levels_.back();
  Level made{.host = hostOf(level), .plans = {}, .time = last_.time};
  Pool pool = search_->run(
      {.budget = budget_, .host = made.host, .slowest = last_.time, .fastest = above.time});
  for (const Level& known : levels_) {
    for (const KnownPlan& plan : known.plans) {
      if (plan.hostPeak <= made.host) made.time = std::min(made.time, plan.time);
    }
  }
  for (KnownPlan& plan : pool) {
    if (plan.peak > budget_ || plan.time < above.time) continue;
    if (plan.hostPeak >= above.host || plan.hostPeak < last_.hostPeak) continue;
    if (plan.hostPeak <= made.host) made.time = std::min(made.time, plan.time);
    made.plans.push_back(std::move(plan));
  }
  return made;
}

const KnownPlan* HostChain::find(int64_t host, int64_t slowest, int64_t fastest) {
  const KnownPlan* best = nullptr;
  const auto consider = [&](const KnownPlan& plan) {
    if (plan.hostPeak > host || plan.time >= slowest || plan.time < fastest) return;
    if (best == nullptr || isBetter(plan, *best)) best = &plan;
  };
  if (host < last_.hostPeak) return nullptr;
  consider(last_);
  for (int level = 0; level <= levelCount(); ++level) {
    if (static_cast<size_t>(level) == levels_.size()) levels_.push_back(make(level));
    const Level& known = levels_[static_cast<size_t>(level)];
    for (const KnownPlan& plan : known.plans) consider(plan);
    // What comes below is no faster.
    if (known.time >= slowest || (known.host <= host && known.time >= fastest)) break;
    if (best != nullptr && known.time > best->time) break;
  }
  return best;
}

bool isBetter(const KnownPlan& a, const KnownPlan& b) {
  return std::tie(a.time, a.moved, a.peak) < std::tie(b.time, b.moved, b.peak);
}

}  // namespace stowage::planner
