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
  levels_.push_back({.host = first.hostHeight, .plans = {first}, .time = first.time});
}

int HostChain::levelCount() const { return search_->isLarge() ? kLevelsWhenLarge : kLevels; }

int64_t HostChain::hostOf(int level) const {
  const int64_t first = levels_.front().host;
  return first - (first - last_.hostHeight) * level / levelCount();
}

// What is faster than the level above was missed there; it may not come back now.
HostChain::Level HostChain::make(int level) const {
  const Level& above = levels_.back();
  Level made{.host = hostOf(level), .plans = {}, .time = last_.time};
  Pool pool = search_->run(
      {.budget = budget_, .host = made.host, .slowest = last_.time, .fastest = above.time});
  for (const Level& known : levels_) {
    for (const KnownPlan& plan : known.plans) {
      if (plan.hostHeight <= made.host) made.time = std::min(made.time, plan.time);
    }
  }
  for (KnownPlan& plan : pool) {
    if (plan.height > budget_ || plan.time < above.time) continue;
    if (plan.hostHeight >= above.host || plan.hostHeight < last_.hostHeight) continue;
    if (plan.hostHeight <= made.host) made.time = std::min(made.time, plan.time);
    made.plans.push_back(std::move(plan));
  }
  return made;
}

const KnownPlan* HostChain::find(int64_t host, int64_t slowest) {
  const KnownPlan* best = nullptr;
  const auto consider = [&](const KnownPlan& plan) {
    if (plan.hostHeight > host || plan.time >= slowest) return;
    if (best == nullptr || isBetter(plan, *best)) best = &plan;
  };
  if (host < last_.hostHeight) return nullptr;
  consider(last_);
  for (int level = 0; level <= levelCount(); ++level) {
    if (static_cast<size_t>(level) == levels_.size()) levels_.push_back(make(level));
    const Level& known = levels_[static_cast<size_t>(level)];
    for (const KnownPlan& plan : known.plans) consider(plan);
    // What comes below is no faster.
    if (known.host <= host || known.time >= slowest) break;
  }
  return best;
}

bool isBetter(const KnownPlan& a, const KnownPlan& b) {
  return std::tie(a.time, a.moved, a.height) < std::tie(b.time, b.moved, b.height);
}

}  // namespace stowage::planner
