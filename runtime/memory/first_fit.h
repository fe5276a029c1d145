// SPDX-License-Identifier: Apache-2.0
//
// First-fit placement in a line of bytes: each block takes the lowest gap that holds it, and a gap
// is used again at once. The rule is the same when temporaries are measured and when they are
// served, so a sequence fits in the peak that was measured for it. In whatever order blocks
// come and go, the peak never exceeds the sum of all sizes ever asked for.
#ifndef STOWAGE_RUNTIME_MEMORY_FIRST_FIT_H_
#define STOWAGE_RUNTIME_MEMORY_FIRST_FIT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/units.h"

namespace stowage::runtime {

class FirstFit {
 public:
  /// Blocks begin at and last for multiples of `unit` bytes.
  explicit FirstFit(int64_t unit) : unit_(unit) {}

  /// The offset of a block that ends at or before `limit`; nothing if there is no gap.
  std::optional<int64_t> take(Bytes bytes, Bytes limit);
  /// Gives back the block that begins at `offset`; false if there is none.
  bool release(int64_t offset);
  /// The same for the block that ends at `end`.
  bool releaseEndingAt(int64_t end);

  /// End of the highest block there is.
  Bytes top() const;
  /// The highest `top` so far.
  Bytes peak() const { return peak_; }
  Bytes bytesInUse() const;
  bool isEmpty() const { return blocks_.empty(); }

 private:
  struct Block {
    int64_t offset;
    int64_t bytes;
  };
  int64_t unit_;
  std::vector<Block> blocks_;  // by offset
  Bytes peak_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MEMORY_FIRST_FIT_H_
