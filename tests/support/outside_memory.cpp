// SPDX-License-Identifier: Apache-2.0
//
// glibc calls the definitions of the program instead of its own; its own stay reachable under
// other names.
#include "tests/support/outside_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "runtime/torch/served_allocator.h"

extern "C" {
void* __libc_malloc(size_t bytes);                      // NOLINT: names of the C library
void* __libc_calloc(size_t count, size_t bytes);        // NOLINT
void* __libc_realloc(void* block, size_t bytes);        // NOLINT
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT
}

namespace stowage::tests {

namespace {

struct Count {
  std::atomic<int64_t> calls{0};
  std::atomic<int64_t> bytes{0};

  void add(size_t more) {
    calls.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(static_cast<int64_t>(more), std::memory_order_relaxed);
  }
  OutsideMemory read() const { return {calls.load(), bytes.load()}; }
};

Count ofDevices;
Count ofAll;

void note(size_t bytes) {
  if (static_cast<int64_t>(bytes) < kSmallestCounted) return;
  ofAll.add(bytes);
  if (runtime::isAllocatingThread()) ofDevices.add(bytes);
}

}  // namespace

OutsideMemory countOutsideMemory() { return ofDevices.read(); }
OutsideMemory countAllMemory() { return ofAll.read(); }

}  // namespace stowage::tests

#pragma GCC visibility push(default)
extern "C" {

void* malloc(size_t bytes) {
  stowage::tests::note(bytes);
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  stowage::tests::note(count * bytes);
  return __libc_calloc(count, bytes);
}

void* realloc(void* block, size_t bytes) {
  stowage::tests::note(bytes);
  return __libc_realloc(block, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  stowage::tests::note(bytes);
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  stowage::tests::note(bytes);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** block, size_t alignment, size_t bytes) {
  stowage::tests::note(bytes);
  void* made = __libc_memalign(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

void* mmap(void* where, size_t bytes, int protection, int flags, int file, off_t offset) {
  stowage::tests::note(bytes);
  return reinterpret_cast<void*>(syscall(SYS_mmap, where, bytes, protection, flags, file, offset));
}

}  // extern "C"
#pragma GCC visibility pop
