// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/arena_registry.h"

#include <string>

namespace stowage::runtime {

ir::Error ArenaRegistry::add(StepAllocator& allocator) {
  for (auto& slot : slots_) {
    StepAllocator* free = nullptr;
    if (slot.compare_exchange_strong(free, &allocator)) return ir::success();
  }
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       "more than " + std::to_string(kMostArenas) + " arenas at once");
}

void ArenaRegistry::remove(StepAllocator& allocator) {
  for (auto& slot : slots_) {
    StepAllocator* own = &allocator;
    if (slot.compare_exchange_strong(own, nullptr)) return;
  }
}

StepAllocator* ArenaRegistry::findOwner(const void* address) const {
  for (const auto& slot : slots_) {
    StepAllocator* allocator = slot.load(std::memory_order_acquire);
    if (allocator != nullptr && allocator->owns(address)) return allocator;
  }
  return nullptr;
}

}  // namespace stowage::runtime
