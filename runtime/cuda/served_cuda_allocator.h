// SPDX-License-Identifier: Apache-2.0
//
// Replaces libtorch's caching allocator for CUDA memory and forwards every call to it. The
// exception is a thread while it serves a launch: its allocations are placed as the plan says, or
// logged.
// Other threads (a data loader, a second model) are not affected. One thread launches all CUDA ops,
// so unlike on the CPU there are no workers to register. The allocator is installed once per
// process and never removed, because blocks may outlive every plan.
#ifndef STOWAGE_RUNTIME_CUDA_SERVED_CUDA_ALLOCATOR_H_
#define STOWAGE_RUNTIME_CUDA_SERVED_CUDA_ALLOCATOR_H_

#include <cstdint>

#include "ir/base/error.h"
#include "runtime/torch/served_allocator.h"

namespace stowage::runtime {

/// Puts the allocator in place; later calls do nothing. libtorch's CUDA state must be initialised.
void installServedCudaAllocator();

/// While it lives, the calling thread allocates CUDA memory from `source`.
class ServedThread {
 public:
  explicit ServedThread(AllocationSource& source);
  ~ServedThread();
  ServedThread(const ServedThread&) = delete;
  ServedThread& operator=(const ServedThread&) = delete;

 private:
  AllocationSource* before_;
};

/// An arena registered for release: a served block is recognised by its address when it is freed.
class CudaArenaRegistration {
 public:
  /// Errors: kEnvironment when there are too many.
  static ir::Error add(StepAllocator& allocator);
  static void remove(StepAllocator& allocator);
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_SERVED_CUDA_ALLOCATOR_H_
