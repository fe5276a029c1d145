// SPDX-License-Identifier: Apache-2.0
//
// Places items one by one, in the order asked for, each into the smallest hole among those alive at
// the same time. Which order is good is the caller's business (planner/addresses/arena.h).
#ifndef STOWAGE_PLANNER_ADDRESSES_PLACER_H_
#define STOWAGE_PLANNER_ADDRESSES_PLACER_H_

#include <utility>
#include <vector>

#include "planner/addresses/arena.h"

namespace stowage::planner {

struct ByteSpan {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Bytes that have users, lowest first, and when each is in use: kept apart, for a look at who is
/// alive at a time reads all of the times and few of the bytes.
class TakenBytes {
 public:
  void insert(const ByteSpan& bytes, const ir::TickRange& alive);
  /// Writes the bytes in use at some tick of `alive` to `found`, lowest first, and says how many
  /// they are. There must be room for size().
  size_t collect(const ir::TickRange& alive, ByteSpan* found) const;
  size_t size() const { return bytes_.size(); }

 private:
  struct Times {
    int32_t begin, end;
  };
  std::vector<ByteSpan> bytes_;
  std::vector<Times> times_;
};

/// The circle of ticks is cut into slices, each with the bytes in use in it, so that a short-lived
/// item is held against its neighbours in time alone.
class Placer {
 public:
  /// Items that are alive for less than `period` ticks. `base`: bytes at the bottom that are taken.
  Placer(llvm::ArrayRef<ArenaItem> items, int64_t period, int64_t base);

  void place(int32_t item);
  /// By item; 0 for those not placed.
  std::vector<int64_t> takeOffsets() { return std::move(offsets_); }
  int64_t peak() const { return peak_; }

 private:
  void collectNeighbours(const ir::TickRange& alive);
  void addNeighbours(const TakenBytes& among, const ir::TickRange& alive);
  int64_t findHole(int64_t bytes) const;
  void take(const ByteSpan& bytes, const ir::TickRange& alive);
  size_t sliceOf(int64_t tick) const;

  llvm::ArrayRef<ArenaItem> items_;
  int64_t period_;
  int64_t base_;
  int64_t peak_;
  std::vector<int64_t> offsets_;
  TakenBytes all_;
  std::vector<TakenBytes> slices_;
  std::vector<ByteSpan> neighbours_;  // the first so many
  std::vector<ByteSpan> merged_;      // room for the next
  size_t neighbourCount_ = 0;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_ADDRESSES_PLACER_H_
