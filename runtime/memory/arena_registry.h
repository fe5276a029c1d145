// SPDX-License-Identifier: Apache-2.0
//
// The arenas in which served blocks may lie: whoever releases a block finds its owner by address,
// on any thread and without a lock.
#ifndef STOWAGE_RUNTIME_MEMORY_ARENA_REGISTRY_H_
#define STOWAGE_RUNTIME_MEMORY_ARENA_REGISTRY_H_

#include <array>
#include <atomic>

#include "ir/base/error.h"
#include "runtime/memory/step_allocator.h"

namespace stowage::runtime {

class ArenaRegistry {
 public:
  /// Errors: kEnvironment when there are too many.
  ir::Error add(StepAllocator& allocator);
  void remove(StepAllocator& allocator);
  /// Null: the address lies in no arena.
  StepAllocator* findOwner(const void* address) const;

 private:
  // More devices than anybody has at once; a fixed number needs no lock to look through.
  static constexpr size_t kMostArenas = 64;
  std::array<std::atomic<StepAllocator*>, kMostArenas> slots_{};
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MEMORY_ARENA_REGISTRY_H_
