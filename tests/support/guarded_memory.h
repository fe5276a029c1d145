// SPDX-License-Identifier: Apache-2.0
//
// Memory for tensors in which every access outside is seen: the page behind each block cannot be
// touched, and what lies between a block's end and that page, and before the block, holds a pattern
// that is looked at afterwards. Also libtorch's allocator on the CPU while a GuardedAllocator is
// installed. Nothing is ever given back: it is for child processes that end soon.
#ifndef STOWAGE_TESTS_SUPPORT_GUARDED_MEMORY_H_
#define STOWAGE_TESTS_SUPPORT_GUARDED_MEMORY_H_

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stowage::tests {

class GuardedMemory {
 public:
  /// A block that ends at a page that cannot be touched, but for what aligning it to 16 takes.
  /// Throws c10::OutOfMemoryError for more than 64 MiB.
  uint8_t* take(size_t bytes);
  /// False when something was written outside of a block that was taken since the last look.
  bool lookAround();

 private:
  struct Block {
    const uint8_t* begin;
    const uint8_t* from;
    const uint8_t* to;
    const uint8_t* end;
  };
  std::vector<Block> blocks_;
};

/// Serves libtorch's allocations on the CPU from guarded memory from now on.
class GuardedAllocator final : public c10::Allocator {
 public:
  explicit GuardedAllocator(GuardedMemory& memory) : memory_(memory) {}
  void install();

  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t count) const override;

 private:
  GuardedMemory& memory_;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_GUARDED_MEMORY_H_
