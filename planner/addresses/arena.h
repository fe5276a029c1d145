// SPDX-License-Identifier: Apache-2.0
//
// Addresses: places items with a low peak. Two items that are alive at a common tick never share a
// byte. Live ranges lie on a circle of `period` ticks because a step repeats. So an item that
// crosses the step boundary (tick 0) keeps its address from one step to the next.
// Items that live for ever are stacked at the bottom. Every other item goes into the smallest hole
// that is large enough. Several orders are tried, and the placement with the lowest peak counts.
// An item whose begin may be put off is placed as if it began at its latest tick. It then begins as
// early as its place is free. Deterministic.
#ifndef STOWAGE_PLANNER_ADDRESSES_ARENA_H_
#define STOWAGE_PLANNER_ADDRESSES_ARENA_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "ir/base/interval.h"

namespace stowage::planner {

struct ArenaItem {
  int64_t bytes = 0;    // a multiple of the alignment
  ir::TickRange alive;  // begin in [0, period), at most a period long; empty: needs no place
  int64_t latest = 0;   // the begin may be put off up to here; not before it
};

struct Placement {
  std::vector<int64_t> offsets;  // by item
  std::vector<int64_t> delays;   // by item: ticks by which its begin is put off
  int64_t peak = 0;              // the end of the highest item, `base` included
};

/// The most bytes alive at once when every begin is put off as far as it may be. No placement has a
/// lower peak.
int64_t findLeastPeak(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base);

/// `base`: bytes at the bottom that are taken. The search ends when the peak is at most `goal`, or
/// at most the bytes that are alive at once.
Placement placeItems(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base, int64_t goal);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_ADDRESSES_ARENA_H_
