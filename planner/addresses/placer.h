// SPDX-License-Identifier: Apache-2.0
//
// Places items one by one, in the order asked for, each into the smallest hole among those alive at
// the same time. Which order is good is the caller's business (planner/addresses/arena.h).
#ifndef STOWAGE_PLANNER_ADDRESSES_PLACER_H_
#define STOWAGE_PLANNER_ADDRESSES_PLACER_H_

#include <utility>
#include <vector>

#include "planner/addresses/arena.h"
#include "planner/addresses/byte_set.h"

namespace stowage::planner {

/// Bytes that have users, lowest first, and when each is in use: kept apart, for a look at who is
/// alive at a time reads all of the times and few of the bytes.
class TakenBytes {
 public:
  void insert(const ByteSpan& bytes, const ir::TickRange& alive);
  /// Writes the bytes in use at some tick of `alive` to `found`, lowest first.
  void collect(const ir::TickRange& alive, std::vector<ByteSpan>& found) const;

 private:
  struct Times {
    int32_t begin, end;
  };
  std::vector<ByteSpan> bytes_;
  std::vector<Times> times_;
};

/// The circle of ticks is cut into slices, the leaves of a binary tree. A node of the tree knows
/// the bytes in use at any of its ticks, in few spans, as holes are few. So who is alive in whole
/// slices is asked of few nodes, and times are compared only in the slices at both ends.
class Placer {
 public:
  /// Items that are alive for less than `period` ticks. `base`: bytes at the bottom that are taken.
  Placer(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base);

  void place(int32_t item);
  /// By item; 0 for those not placed.
  std::vector<int64_t> takeOffsets() { return std::move(offsets_); }
  int64_t peak() const { return peak_; }

 private:
  struct Slice {
    ByteSet throughout;  // in use in the whole slice
    TakenBytes partly;
  };
  /// The slices of a live range: whole ones from `begin` to `end`; the others are the one before
  /// and the one after those, if `hasFirst` and `hasLast`.
  struct Slices {
    size_t begin = 0;
    size_t end = 0;
    bool hasFirst = false;
    bool hasLast = false;
  };
  Slices slicesOf(const ir::TickRange& alive) const;
  int64_t sliceEnd(size_t slice) const;
  void subtractTaken(const ir::TickRange& alive);
  void subtractPartly(size_t slice, const ir::TickRange& alive);
  void take(const ByteSpan& bytes, const ir::TickRange& alive);

  llvm::ArrayRef<ArenaItem> items_;
  int64_t period_;
  int64_t base_;
  int64_t peak_;
  std::vector<int64_t> offsets_;
  int64_t width_;                // ticks of a slice
  std::vector<Slice> slices_;    // a power of two
  std::vector<ByteSet> inUse_;   // at some tick of a node; the children of node i: 2 i and 2 i + 1
  Holes holes_;                  // of the item that is being placed
  std::vector<ByteSpan> found_;  // room for the bytes of a slice
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_ADDRESSES_PLACER_H_
