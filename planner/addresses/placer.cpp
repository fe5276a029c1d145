// SPDX-License-Identifier: Apache-2.0
#include "planner/addresses/placer.h"

#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <cassert>

namespace stowage::planner {

namespace {

constexpr int64_t kMostSlices = 64;
constexpr int64_t kTicksOfASlice = 64;  // at least

bool isBelow(const ByteSpan& a, const ByteSpan& b) { return a.begin < b.begin; }

size_t sliceCount(int64_t period) {
  const int64_t count = std::clamp<int64_t>(period / kTicksOfASlice, 1, kMostSlices);
  return static_cast<size_t>(llvm::PowerOf2Ceil(static_cast<uint64_t>(count)));
}

}  // namespace

void TakenBytes::insert(const ByteSpan& bytes, const ir::TickRange& alive) {
  const auto at = std::upper_bound(bytes_.begin(), bytes_.end(), bytes, isBelow);
  times_.insert(times_.begin() + (at - bytes_.begin()),
                {static_cast<int32_t>(alive.begin), static_cast<int32_t>(alive.end)});
  bytes_.insert(at, bytes);
}

void TakenBytes::collect(const ir::TickRange& alive, std::vector<ByteSpan>& found) const {
  const auto begin = static_cast<int32_t>(alive.begin);
  const auto end = static_cast<int32_t>(alive.end);
  found.resize(bytes_.size());
  size_t count = 0;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    found[count] = bytes_[i];
    // Both sides are looked at: a branch would be guessed wrong half of the time.
    count +=
        static_cast<size_t>(begin < times_[i].end) & static_cast<size_t>(times_[i].begin < end);
  }
  found.resize(count);
}

Placer::Placer(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base)
    : items_(items),
      period_(period),
      base_(base),
      peak_(base),
      offsets_(items.size(), 0),
      width_(1),
      slices_(sliceCount(period)),
      inUse_(2 * slices_.size()) {
  assert(period <= INT32_MAX && "the ticks of a step fit into 32 bits");
  const auto count = static_cast<int64_t>(slices_.size());
  width_ = std::max<int64_t>((period + count - 1) / count, 1);
}

void Placer::place(int32_t index) {
  const ArenaItem& item = items_[static_cast<size_t>(index)];
  if (item.bytes == 0 || item.alive.isEmpty()) return;
  // What is alive across the step boundary is so in two ranges.
  const ir::TickRange first{.begin = item.alive.begin, .end = std::min(item.alive.end, period_)};
  const ir::TickRange second{.begin = 0, .end = item.alive.end - period_};
  holes_.reset(base_, item.bytes);
  subtractTaken(first);
  if (!second.isEmpty()) subtractTaken(second);
  const int64_t offset = holes_.smallest();
  const ByteSpan bytes{offset, offset + item.bytes};
  offsets_[static_cast<size_t>(index)] = offset;
  peak_ = std::max(peak_, bytes.end);
  take(bytes, first);
  if (!second.isEmpty()) take(bytes, second);
}

int64_t Placer::sliceEnd(size_t slice) const {
  return std::min(static_cast<int64_t>(slice + 1) * width_, period_);
}

Placer::Slices Placer::slicesOf(const ir::TickRange& alive) const {
  Slices found{.begin = static_cast<size_t>(alive.begin / width_),
               .end = static_cast<size_t>((alive.end - 1) / width_) + 1};
  const bool endsWithin = alive.end < sliceEnd(found.end - 1);
  if (static_cast<int64_t>(found.begin) * width_ < alive.begin) {
    found.hasFirst = true;
    ++found.begin;
  }
  if (endsWithin && found.begin < found.end) {
    found.hasLast = true;
    --found.end;
  }
  return found;
}

void Placer::subtractTaken(const ir::TickRange& alive) {
  const Slices slices = slicesOf(alive);
  size_t begin = slices.begin + slices_.size();
  size_t end = slices.end + slices_.size();
  for (; begin < end; begin /= 2, end /= 2) {
    if (begin % 2 == 1) holes_.subtract(inUse_[begin++].spans());
    if (end % 2 == 1) holes_.subtract(inUse_[--end].spans());
  }
  if (slices.hasFirst) subtractPartly(slices.begin - 1, alive);
  if (slices.hasLast) subtractPartly(slices.end, alive);
}

void Placer::subtractPartly(size_t slice, const ir::TickRange& alive) {
  holes_.subtract(slices_[slice].throughout.spans());
  slices_[slice].partly.collect(alive, found_);
  holes_.subtract(found_);
}

void Placer::take(const ByteSpan& bytes, const ir::TickRange& alive) {
  const Slices slices = slicesOf(alive);
  for (size_t i = slices.begin; i < slices.end; ++i) slices_[i].throughout.insert(bytes);
  if (slices.hasFirst) slices_[slices.begin - 1].partly.insert(bytes, alive);
  if (slices.hasLast) slices_[slices.end].partly.insert(bytes, alive);
  size_t first = slices_.size() + slices.begin - (slices.hasFirst ? 1 : 0);
  size_t last = slices_.size() + slices.end - (slices.hasLast ? 0 : 1);
  // What all nodes of a level had, those above them have.
  for (bool isNew = true; isNew && first > 0; first /= 2, last /= 2) {
    isNew = false;
    for (size_t node = first; node <= last; ++node) isNew = inUse_[node].insert(bytes) || isNew;
  }
}

}  // namespace stowage::planner
