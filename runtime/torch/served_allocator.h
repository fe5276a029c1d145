// SPDX-License-Identifier: Apache-2.0
//
// The allocator that libtorch sees for CPU memory. It stands in front of libtorch's own and hands
// every call on, except on threads that belong to a device while one of the device's launches is
// under way: then it serves from the launch's plan, or keeps a log of what libtorch's own gives. So
// a data loader that allocates at the same time is not touched. A device's threads are the one that
// runs its ops and the OpenMP workers of that thread, each registered once. Installed once per
// process and never taken out: blocks may live on.
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
/// Is the calling thread registered? For tests and for counting what goes elsewhere.
bool isAllocatingThread();

/// Memory in which served blocks lie: their release is told apart by address. Blocks must not
/// outlive the registration.
class ArenaRegistration {
 public:
  /// Errors: kEnvironment when there are too many.
  static ir::Error add(StepAllocator& allocator);
  static void remove(StepAllocator& allocator);
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_SERVED_ALLOCATOR_H_
