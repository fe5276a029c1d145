// SPDX-License-Identifier: Apache-2.0
//
// Replaces libtorch's allocator for CPU memory and forwards every call to it.
// The exception is a thread of a device while one of the device's launches runs: its allocations
// are placed as the plan says, or logged. Other threads, such as a data loader, are not affected. A
// device's threads are the one that runs its ops and the OpenMP workers of that thread, each
// registered once. The allocator is installed once per process and never removed, because blocks
// may outlive every plan.
#ifndef STOWAGE_RUNTIME_TORCH_SERVED_ALLOCATOR_H_
#define STOWAGE_RUNTIME_TORCH_SERVED_ALLOCATOR_H_

#include <atomic>
#include <cstdint>

#include "ir/base/error.h"
#include "runtime/memory/allocation_log.h"
#include "runtime/memory/step_allocator.h"

namespace stowage::runtime {

/// What a device's threads allocate from. At most one of the two is set.
struct AllocationSource {
  std::atomic<StepAllocator*> serving{nullptr};
  std::atomic<AllocationLog*> logging{nullptr};
  std::atomic<int64_t> passedOn{0};  // allocations that neither served nor logged
};

/// Puts the allocator in place; later calls do nothing.
void installServedAllocator();

/// The calling thread and its OpenMP workers belong to `source` from now on (null: to none). The
/// number of intra-op threads must have been set on this thread. The workers of a thread stay the
/// same as long as all parallel regions ask for the same number of threads, as libtorch's do.
void registerAllocatingThreads(AllocationSource* source);
/// True if the calling thread is registered: for tests, and to count allocations elsewhere.
bool isAllocatingThread();

/// An arena registered for release: a served block is recognised by its address when it is freed.
/// Blocks must not outlive the registration.
class ArenaRegistration {
 public:
  /// Errors: kEnvironment when there are too many.
  static ir::Error add(StepAllocator& allocator);
  static void remove(StepAllocator& allocator);
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_SERVED_ALLOCATOR_H_
