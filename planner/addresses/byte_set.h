// SPDX-License-Identifier: Apache-2.0
//
// Bytes in use as few spans, and the holes that are left between several such sets.
#ifndef STOWAGE_PLANNER_ADDRESSES_BYTE_SET_H_
#define STOWAGE_PLANNER_ADDRESSES_BYTE_SET_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <vector>

namespace stowage::planner {

struct ByteSpan {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Spans that touch or overlap are one.
class ByteSet {
 public:
  /// False if all of them were there.
  bool insert(const ByteSpan& bytes);
  /// Lowest first.
  llvm::ArrayRef<ByteSpan> spans() const { return spans_; }

 private:
  std::vector<ByteSpan> spans_;
};

/// What is free above a base, in holes of `least` bytes or more; the last hole has no end.
class Holes {
 public:
  void reset(int64_t base, int64_t least);
  /// `taken`: by begin, lowest first; they may overlap.
  void subtract(llvm::ArrayRef<ByteSpan> taken);
  /// Where the smallest one begins; of equal ones the lowest.
  int64_t smallest() const;

 private:
  void keep(int64_t begin, int64_t end) {
    if (end - begin >= least_) left_.push_back({begin, end});
  }

  int64_t least_ = 0;
  std::vector<ByteSpan> holes_;  // lowest first
  std::vector<ByteSpan> left_;   // room for the next
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_ADDRESSES_BYTE_SET_H_
