// SPDX-License-Identifier: Apache-2.0
//
// Addresses: places items so that two that are alive at a common tick never share a byte, and the
// highest used byte is low. Lifetimes lie on a circle of `period` ticks (a step repeats), so an
// item that crosses the step boundary (tick 0) keeps its address from one step to the next.
// Items that live for ever are stacked at the bottom, the rest goes into the smallest hole that is
// large enough, in several orders; the lowest result counts. An item whose begin may be put off is
// placed as if it were, and then begins as early as its place is free. Deterministic.
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
  int64_t height = 0;
};

/// Bytes of those alive at once when every begin is put off as far as it may be: no placement is
/// lower.
int64_t findLeastHeight(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base);

/// `base`: bytes at the bottom that are taken. A placement that is not higher than `goal`, or than
/// what is alive at once, is good enough: nothing further is tried.
Placement placeItems(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base, int64_t goal);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_ADDRESSES_ARENA_H_
