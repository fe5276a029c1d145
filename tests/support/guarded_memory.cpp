// SPDX-License-Identifier: Apache-2.0
#include "tests/support/guarded_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace stowage::tests {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 16;
constexpr size_t kMost = size_t{64} << 20;
constexpr uint8_t kPattern = 0xA5;

size_t roundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

void keep(void*) {}

}  // namespace

uint8_t* GuardedMemory::take(size_t bytes) {
  TORCH_CHECK_WITH(OutOfMemoryError, bytes <= kMost, "can't allocate memory: ", bytes, " bytes");
  const size_t inner = roundUp(std::max<size_t>(bytes, 1), kPage);
  void* mapped = ::mmap(nullptr, inner + 2 * kPage, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK_WITH(OutOfMemoryError, mapped != MAP_FAILED, "can't allocate memory: a mapping");
  auto* begin = static_cast<uint8_t*>(mapped) + kPage;
  TORCH_CHECK_WITH(OutOfMemoryError, ::mprotect(begin, inner, PROT_READ | PROT_WRITE) == 0,
                   "can't allocate memory: a mapping");
  uint8_t* from = begin + inner - roundUp(bytes, kAlignment);
  std::memset(begin, kPattern, inner);
  blocks_.push_back({begin, from, from + bytes, begin + inner});
  return from;
}

bool GuardedMemory::lookAround() {
  const auto isPattern = [](uint8_t byte) { return byte == kPattern; };
  const bool isIntact = std::all_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return std::all_of(block.begin, block.from, isPattern) &&
           std::all_of(block.to, block.end, isPattern);
  });
  blocks_.clear();
  return isIntact;
}

void GuardedAllocator::install() {
  constexpr uint8_t kHighest = 255;
  c10::SetCPUAllocator(this, kHighest);
}

c10::DataPtr GuardedAllocator::allocate(size_t bytes) {
  if (bytes == 0) return {nullptr, c10::DeviceType::CPU};
  uint8_t* block = memory_.take(bytes);
  return {block, block, &keep, c10::DeviceType::CPU};
}

c10::DeleterFnPtr GuardedAllocator::raw_deleter() const { return &keep; }

void GuardedAllocator::copy_data(void* to, const void* from, std::size_t count) const {
  default_copy_data(to, from, count);
}

}  // namespace stowage::tests
