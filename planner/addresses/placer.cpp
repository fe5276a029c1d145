// SPDX-License-Identifier: Apache-2.0
#include "planner/addresses/placer.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stowage::planner {

namespace {

constexpr int64_t kMostSlices = 64;
constexpr size_t kFewSlices = 3;

bool isBelow(const ByteSpan& a, const ByteSpan& b) { return a.begin < b.begin; }

}  // namespace

void TakenBytes::insert(const ByteSpan& bytes, const ir::TickRange& alive) {
  const auto at = std::upper_bound(bytes_.begin(), bytes_.end(), bytes, isBelow);
  times_.insert(times_.begin() + (at - bytes_.begin()),
                {static_cast<int32_t>(alive.begin), static_cast<int32_t>(alive.end)});
  bytes_.insert(at, bytes);
}

size_t TakenBytes::collect(const ir::TickRange& alive, ByteSpan* found) const {
  const auto begin = static_cast<int32_t>(alive.begin);
  const auto end = static_cast<int32_t>(alive.end);
  size_t count = 0;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    found[count] = bytes_[i];
    // Both sides are looked at: a branch would be guessed wrong half of the time.
    count += static_cast<size_t>((begin < times_[i].end) & (times_[i].begin < end));
  }
  return count;
}

Placer::Placer(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base)
    : items_(items),
      period_(period),
      base_(base),
      peak_(base),
      offsets_(items.size(), 0),
      slices_(static_cast<size_t>(std::clamp<int64_t>(period / 64, 1, kMostSlices))) {
  assert(period <= INT32_MAX && "the ticks of a step fit into 32 bits");
}

void Placer::place(int32_t index) {
  const ArenaItem& item = items_[static_cast<size_t>(index)];
  if (item.bytes == 0 || item.alive.isEmpty()) return;
  neighbourCount_ = 0;
  // What is alive across the step boundary is so in two ranges.
  const ir::TickRange first{.begin = item.alive.begin, .end = std::min(item.alive.end, period_)};
  const ir::TickRange second{.begin = 0, .end = item.alive.end - period_};
  collectNeighbours(first);
  if (!second.isEmpty()) collectNeighbours(second);
  const int64_t offset = findHole(item.bytes);
  const ByteSpan bytes{offset, offset + item.bytes};
  offsets_[static_cast<size_t>(index)] = offset;
  peak_ = std::max(peak_, bytes.end);
  take(bytes, first);
  if (!second.isEmpty()) take(bytes, second);
}

// Bytes in use while the item is alive, lowest first, some of them more than once. A short-lived
// one looks at its slices, any other at everything.
void Placer::collectNeighbours(const ir::TickRange& alive) {
  const size_t first = sliceOf(alive.begin);
  const size_t last = sliceOf(alive.end - 1);
  if (last - first >= kFewSlices) {
    addNeighbours(all_, alive);
    return;
  }
  for (size_t slice = first; slice <= last; ++slice) addNeighbours(slices_[slice], alive);
}

void Placer::addNeighbours(const TakenBytes& among, const ir::TickRange& alive) {
  const size_t room = neighbourCount_ + among.size();
  if (neighbours_.size() < room) neighbours_.resize(2 * room);
  ByteSpan* const first = neighbours_.data();
  ByteSpan* const middle = first + neighbourCount_;
  const size_t added = among.collect(alive, middle);
  neighbourCount_ += added;
  if (middle == first || added == 0) return;
  if (merged_.size() < neighbours_.size()) merged_.resize(neighbours_.size());
  std::merge(first, middle, middle, middle + added, merged_.data(), isBelow);
  std::swap(neighbours_, merged_);
}

// The smallest hole between the neighbours that is large enough, else what is above them.
int64_t Placer::findHole(int64_t bytes) const {
  int64_t top = base_;
  int64_t best = -1;
  int64_t bestHole = INT64_MAX;
  for (const ByteSpan& other : llvm::ArrayRef(neighbours_.data(), neighbourCount_)) {
    const int64_t hole = other.begin - top;
    if (hole >= bytes && hole < bestHole) {
      best = top;
      bestHole = hole;
    }
    top = std::max(top, other.end);
  }
  return best < 0 ? top : best;
}

void Placer::take(const ByteSpan& bytes, const ir::TickRange& alive) {
  all_.insert(bytes, alive);
  for (size_t slice = sliceOf(alive.begin); slice <= sliceOf(alive.end - 1); ++slice) {
    slices_[slice].insert(bytes, alive);
  }
}

size_t Placer::sliceOf(int64_t tick) const {
  return static_cast<size_t>(tick * static_cast<int64_t>(slices_.size()) / period_);
}

}  // namespace stowage::planner
