// SPDX-License-Identifier: Apache-2.0
#include "planner/addresses/arena.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "planner/addresses/free_since.h"
#include "planner/addresses/placer.h"

namespace stowage::planner {

namespace {

constexpr int64_t kMostRepairs = 64;
constexpr int64_t kHopelessPart = 4;           // of the goal: what is higher is not repaired
constexpr int64_t kMostVain = 16;              // repairs in a row that do not help
constexpr int64_t kRepairEffort = 50'000'000;  // pairs of items that repairs may look at

using Order = std::vector<int32_t>;
using Key = std::function<int64_t(const ArenaItem&)>;

// As short as they may be: begins put off as far as possible.
std::vector<ArenaItem> shorten(llvm::ArrayRef<ArenaItem> items, int64_t period) {
  std::vector<ArenaItem> result(items.begin(), items.end());
  for (ArenaItem& item : result) {
    if (item.alive.end - item.alive.begin >= period || item.latest <= item.alive.begin) continue;
    const int64_t back = item.latest >= period ? period : 0;
    item.alive = {.begin = item.latest - back, .end = item.alive.end - back};
  }
  return result;
}

int64_t length(const ArenaItem& item) { return item.alive.end - item.alive.begin; }

// Bytes at the fullest tick.
int64_t highestLoad(llvm::ArrayRef<ArenaItem> items, int64_t period) {
  std::vector<int64_t> changes(static_cast<size_t>(period) + 1, 0);
  int64_t load = 0;  // at tick 0
  for (const ArenaItem& item : items) {
    if (item.alive.isEmpty()) continue;
    if (item.alive.end > period) load += item.bytes;
    changes[static_cast<size_t>(item.alive.begin)] += item.bytes;
    changes[static_cast<size_t>(item.alive.end > period ? item.alive.end - period
                                                        : item.alive.end)] -= item.bytes;
  }
  int64_t highest = load;
  for (const int64_t change : changes) highest = std::max(highest, load += change);
  return highest;
}

class Search {
 public:
  Search(llvm::ArrayRef<ArenaItem> items, Order placed, int64_t period, int64_t base, int64_t goal)
      : items_(items), placed_(std::move(placed)), period_(period), base_(base), goal_(goal) {}

  Placement run() {
    tryOrders();
    if (best_.peak > goal_ && best_.peak - goal_ < goal_ / kHopelessPart) repair();
    return std::move(best_);
  }

 private:
  // Largest first, longest first and both, with what crosses the step boundary in line or before
  // the rest.
  void tryOrders() {
    const Key keys[] = {[](const ArenaItem& item) { return item.bytes; },
                        [](const ArenaItem& item) { return item.bytes / 512 * length(item); },
                        length};
    for (const bool crossingFirst : {false, true}) {
      for (const Key& key : keys) {
        tryOrder(orderBy(key, crossingFirst), best_.peak);
        if (best_.peak <= goal_) return;
      }
    }
  }

  // Highest key first, then bytes, then index.
  Order orderBy(const Key& key, bool crossingFirst) const {
    std::vector<std::tuple<int64_t, int64_t, int64_t, int32_t>> ranked;
    for (const int32_t i : placed_) {
      const ArenaItem& item = items_[static_cast<size_t>(i)];
      const bool isFirst = crossingFirst && item.alive.end > period_;
      // What crosses is stacked without holes, so the longest go to the bottom.
      ranked.push_back({isFirst ? 0 : 1, -(isFirst ? length(item) : key(item)), -item.bytes, i});
    }
    std::sort(ranked.begin(), ranked.end());
    Order order;
    for (const auto& [group, value, bytes, index] : ranked) order.push_back(index);
    return order;
  }

  // What ended above the goal is placed earlier next time.
  void repair() {
    const auto pairs = static_cast<int64_t>(placed_.size() * placed_.size()) + 1;
    const int64_t repairs = std::min(kMostRepairs, kRepairEffort / pairs);
    Order order = bestOrder_;
    Placement last = best_;
    int64_t vain = 0;
    for (int64_t i = 0; i < repairs && vain < kMostVain && best_.peak > goal_; ++i) {
      const int64_t before = best_.peak;
      order = moveUp(order, last);
      last = tryOrder(order, INT64_MAX);
      vain = best_.peak < before ? 0 : vain + 1;
    }
  }
  Order moveUp(const Order& order, const Placement& result) const {
    std::vector<std::pair<int64_t, int32_t>> ranked;
    for (size_t i = 0; i < order.size(); ++i) {
      const int32_t item = order[i];
      const auto at = static_cast<size_t>(item);
      const bool isAbove = result.offsets[at] + items_[at].bytes > goal_;
      const auto rank = static_cast<int64_t>(i);
      ranked.push_back({isAbove ? rank - 2 : 2 * rank, item});
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Order moved;
    for (const auto& [rank, item] : ranked) moved.push_back(item);
    return moved;
  }

  // Given up once it is not below `most`.
  Placement tryOrder(const Order& order, int64_t most) {
    Placer placer(items_, period_, base_);
    for (const int32_t item : order) {
      placer.place(item);
      if (placer.peak() >= most) return {};
    }
    Placement placement{.offsets = placer.takeOffsets(), .delays = {}, .peak = placer.peak()};
    if (placement.peak < best_.peak) {
      best_ = placement;
      bestOrder_ = order;
    }
    return placement;
  }

  llvm::ArrayRef<ArenaItem> items_;
  Order placed_;  // the items that need a place
  int64_t period_;
  int64_t base_;
  int64_t goal_;
  Placement best_{.offsets = {}, .delays = {}, .peak = INT64_MAX};
  Order bestOrder_;
};

}  // namespace

int64_t findLeastPeak(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base) {
  return base + highestLoad(shorten(items, period), period);
}

Placement placeItems(llvm::ArrayRef<ArenaItem> asked, int64_t period, int64_t base, int64_t goal) {
  const std::vector<ArenaItem> items = shorten(asked, period);
  const int64_t least = base + highestLoad(items, period);
  Placement result;
  result.offsets.assign(items.size(), 0);
  Order others;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].bytes == 0 || items[i].alive.isEmpty()) continue;
    if (length(items[i]) >= period) {  // there for good
      result.offsets[i] = base;
      base += items[i].bytes;
    } else {
      others.push_back(static_cast<int32_t>(i));
    }
  }
  result.peak = base;
  if (!others.empty()) {
    const Placement found = Search(items, others, period, base, std::max(goal, least)).run();
    for (const int32_t i : others) {
      result.offsets[static_cast<size_t>(i)] = found.offsets[static_cast<size_t>(i)];
    }
    result.peak = found.peak;
  }
  result.delays = findDelays(asked, result.offsets, period);
  return result;
}

}  // namespace stowage::planner
