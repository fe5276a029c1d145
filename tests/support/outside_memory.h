// SPDX-License-Identifier: Apache-2.0
//
// Counts what a device's threads take from the C library while steps run: malloc and its relatives
// and mmap, from 64 KiB on. Linking this into a test replaces them for the whole program. What
// libtorch keeps for itself (packed weights of a matrix library, primitive caches) shows in the
// first steps; after that the count must stay at nothing, or the budget is not all there is.
#ifndef STOWAGE_TESTS_SUPPORT_OUTSIDE_MEMORY_H_
#define STOWAGE_TESTS_SUPPORT_OUTSIDE_MEMORY_H_

#include <cstdint>

namespace stowage::tests {

constexpr int64_t kSmallestCounted = int64_t{64} << 10;

struct OutsideMemory {
  int64_t calls = 0;
  int64_t bytes = 0;
};

/// What all threads took since the program began, from 64 KiB on.
OutsideMemory countAllMemory();

/// What threads that belong to a device (runtime/torch/served_allocator.h) took since the program
/// began.
OutsideMemory countOutsideMemory();

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_OUTSIDE_MEMORY_H_
