// SPDX-License-Identifier: Apache-2.0
#include "planner/arena.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "planner/free_since.h"

namespace stowage::planner {

namespace {

constexpr int64_t kMostSlices = 64;
constexpr int64_t kFewSlices = 3;
constexpr size_t kManyItems = 20'000;  // from which only two orders are tried

// An item that has a place, with all that decides whether another may share its bytes.
struct Placed {
  int64_t offset = 0;
  int64_t end = 0;  // of the bytes
  ir::TickRange alive;
  int32_t item = 0;
};

// Items placed so far. The circle is cut into slices, each with the items that are alive in it, by
// offset, so that a short-lived item is held against its neighbours in time alone.
class Placer {
 public:
  Placer(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base)
      : items_(items),
        period_(period),
        base_(base),
        slices_(static_cast<size_t>(std::clamp<int64_t>(period / 64, 1, kMostSlices))) {
    result_.offsets.assign(items.size(), 0);
    result_.height = base;
  }

  Placement place(llvm::ArrayRef<int32_t> crossing, llvm::ArrayRef<int32_t> others) {
    for (const int32_t item : crossing) stackCrossing(item);
    for (const int32_t item : others) placeOne(item);
    return std::move(result_);
  }

 private:
  using ByOffset = std::vector<Placed>;  // lowest first

  struct Slices {
    int64_t first, last;  // may lie beyond the number of slices: they are on a circle
    int64_t count() const { return last - first + 1; }
  };
  Slices slicesOf(const ir::TickRange& alive) const {
    const auto count = static_cast<int64_t>(slices_.size());
    const int64_t first = alive.begin * count / period_;
    return {first, std::min((alive.end - 1) * count / period_, first + count - 1)};
  }
  ByOffset& sliceAt(int64_t slice) { return slices_[static_cast<size_t>(slice) % slices_.size()]; }

  static bool isBelow(const Placed& a, const Placed& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.item < b.item;
  }
  // Both begin in [0, period) and are at most a period long.
  bool meet(const ir::TickRange& a, const ir::TickRange& b) const {
    return (a.begin < b.end && b.begin < a.end) || b.begin + period_ < a.end ||
           a.begin + period_ < b.end;
  }

  // Those alive at the same time as the item, by offset. A short-lived one looks at its slices, any
  // other at everything.
  void collectNeighbours(const ir::TickRange& alive) {
    neighbours_.clear();
    const Slices slices = slicesOf(alive);
    if (slices.count() > kFewSlices) {
      addNeighbours(placed_, alive);
      return;
    }
    for (int64_t slice = slices.first; slice <= slices.last; ++slice) {
      const auto before = static_cast<int64_t>(neighbours_.size());
      addNeighbours(sliceAt(slice), alive);
      std::inplace_merge(neighbours_.begin(), neighbours_.begin() + before, neighbours_.end(),
                         isBelow);
    }
  }
  void addNeighbours(const ByOffset& among, const ir::TickRange& alive) {
    for (const Placed& other : among) {
      if (meet(alive, other.alive)) neighbours_.push_back(other);
    }
  }
  static void insert(ByOffset& into, const Placed& placed) {
    into.insert(std::upper_bound(into.begin(), into.end(), placed, isBelow), placed);
  }

  // All of them are alive at the seam, so none shares bytes with another.
  void stackCrossing(int32_t index) {
    const ArenaItem& item = items_[static_cast<size_t>(index)];
    if (item.bytes > 0) put(index, result_.height);
  }

  // The smallest hole that is large enough among those between items alive at the same time.
  void placeOne(int32_t index) {
    const ArenaItem& item = items_[static_cast<size_t>(index)];
    if (item.bytes == 0 || item.alive.isEmpty()) return;
    collectNeighbours(item.alive);
    int64_t top = base_;
    int64_t best = -1;
    int64_t bestHole = 0;
    for (const Placed& other : neighbours_) {
      const int64_t hole = other.offset - top;
      if (hole >= item.bytes && (best < 0 || hole < bestHole)) {
        best = top;
        bestHole = hole;
      }
      top = std::max(top, other.end);
    }
    if (best < 0) best = top;
    put(index, best);
  }

  void put(int32_t index, int64_t offset) {
    const ArenaItem& item = items_[static_cast<size_t>(index)];
    const Placed placed{offset, offset + item.bytes, item.alive, index};
    result_.offsets[static_cast<size_t>(index)] = offset;
    result_.height = std::max(result_.height, placed.end);
    insert(placed_, placed);
    const Slices slices = slicesOf(item.alive);
    for (int64_t slice = slices.first; slice <= slices.last; ++slice) {
      insert(sliceAt(slice), placed);
    }
  }

  llvm::ArrayRef<ArenaItem> items_;
  int64_t period_;
  int64_t base_;
  ByOffset placed_;
  std::vector<ByOffset> slices_;
  ByOffset neighbours_;
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

}  // namespace

Placement placeItems(llvm::ArrayRef<ArenaItem> asked, int64_t period, int64_t base,
                     PlacementEffort effort, int64_t goal) {
  const std::vector<ArenaItem> items = shorten(asked, period);
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
  if (items.size() > kManyItems && keys.size() > 2) keys.resize(2);
  // What crosses the seam is alive together, so it is stacked without holes: first.
  const std::vector<int32_t> first = orderBy(items, crossing, length);
  Placement best;
  for (const Key& key : keys) {
    const std::vector<int32_t> rest = orderBy(items, others, key);
    Placement placement = Placer(items, period, base).place(first, rest);
    if (best.offsets.empty() || placement.height < best.height) best = std::move(placement);
    if (best.height <= goal) break;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    if (forEver[i] >= 0) best.offsets[i] = forEver[i];
  }
  best.delays = findDelays(asked, best.offsets, period);
  return best;
}

}  // namespace stowage::planner
