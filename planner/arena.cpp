// SPDX-License-Identifier: Apache-2.0
#include "planner/arena.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace stowage::planner {

namespace {

bool overlapOnCircle(const ir::TickRange& a, const ir::TickRange& b, int64_t period) {
  const ir::TickRange later{.begin = b.begin + period, .end = b.end + period};
  const ir::TickRange earlier{.begin = b.begin - period, .end = b.end - period};
  return a.overlaps(b) || a.overlaps(later) || a.overlaps(earlier);
}

// Items placed so far, by offset, as parallel arrays: the scan for holes reads nothing else.
class Placer {
 public:
  Placer(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base)
      : items_(items), period_(period), base_(base) {
    result_.offsets.assign(items.size(), 0);
    result_.height = base;
  }

  Placement place(llvm::ArrayRef<int32_t> order) {
    for (const int32_t item : order) placeOne(static_cast<size_t>(item));
    return std::move(result_);
  }

 private:
  struct Placed {
    int64_t begin, end;  // bytes
    ir::TickRange alive;
  };

  // The smallest hole that is large enough among those between items alive at the same time.
  void placeOne(size_t index) {
    const ArenaItem& item = items_[index];
    if (item.bytes == 0 || item.alive.isEmpty()) return;
    int64_t top = base_;
    int64_t best = -1;
    int64_t bestHole = 0;
    for (const Placed& other : placed_) {
      if (!overlapOnCircle(item.alive, other.alive, period_)) continue;
      const int64_t hole = other.begin - top;
      if (hole >= item.bytes && (best < 0 || hole < bestHole)) {
        best = top;
        bestHole = hole;
      }
      top = std::max(top, other.end);
    }
    if (best < 0) best = top;
    const Placed placed{best, best + item.bytes, item.alive};
    placed_.insert(
        std::upper_bound(placed_.begin(), placed_.end(), placed,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        placed);
    result_.offsets[index] = best;
    result_.height = std::max(result_.height, placed.end);
  }

  llvm::ArrayRef<ArenaItem> items_;
  int64_t period_;
  int64_t base_;
  std::vector<Placed> placed_;
  Placement result_;
};

using Key = std::function<int64_t(const ArenaItem&)>;

// Highest key first, then bytes, then index.
std::vector<int32_t> orderBy(llvm::ArrayRef<ArenaItem> items, llvm::ArrayRef<int32_t> which,
                             const Key& key) {
  std::vector<int32_t> order(which.begin(), which.end());
  std::vector<int64_t> keys(items.size());
  for (const int32_t i : which) keys[static_cast<size_t>(i)] = key(items[static_cast<size_t>(i)]);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const auto ia = static_cast<size_t>(a);
    const auto ib = static_cast<size_t>(b);
    if (keys[ia] != keys[ib]) return keys[ia] > keys[ib];
    if (items[ia].bytes != items[ib].bytes) return items[ia].bytes > items[ib].bytes;
    return a < b;
  });
  return order;
}

}  // namespace

Placement placeItems(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base,
                     PlacementEffort effort) {
  std::vector<int64_t> forEver(items.size(), -1);
  std::vector<int32_t> crossing;
  std::vector<int32_t> others;
  for (size_t i = 0; i < items.size(); ++i) {
    const ir::TickRange& alive = items[i].alive;
    if (alive.end - alive.begin >= period) {
      forEver[i] = base;
      base += items[i].bytes;
    } else {
      (alive.end > period ? crossing : others).push_back(static_cast<int32_t>(i));
    }
  }
  const Key length = [](const ArenaItem& item) { return item.alive.end - item.alive.begin; };
  const Key size = [](const ArenaItem& item) { return item.bytes; };
  const Key area = [&](const ArenaItem& item) { return item.bytes / 512 * length(item); };
  const Key early = [](const ArenaItem& item) { return -item.alive.begin; };
  std::vector<Key> keys = {size};
  if (effort == PlacementEffort::kBestOrder) keys = {size, area, length, early};
  // What crosses the seam is alive together, so it is stacked without holes: first.
  const std::vector<int32_t> first = orderBy(items, crossing, length);
  Placement best;
  for (const Key& key : keys) {
    std::vector<int32_t> order = first;
    const std::vector<int32_t> rest = orderBy(items, others, key);
    order.insert(order.end(), rest.begin(), rest.end());
    Placement placement = Placer(items, period, base).place(order);
    if (best.offsets.empty() || placement.height < best.height) best = std::move(placement);
  }
  for (size_t i = 0; i < items.size(); ++i) {
    if (forEver[i] >= 0) best.offsets[i] = forEver[i];
  }
  return best;
}

}  // namespace stowage::planner
