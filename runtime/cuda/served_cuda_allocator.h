// SPDX-License-Identifier: Apache-2.0
//
// The allocator that libtorch sees for CUDA memory. It stands in front of libtorch's caching
// allocator and hands every call on, except on a thread that serves a launch at that moment: then
// it serves from the launch's plan, or keeps a log of what libtorch's own gives. Other threads of
// the program (a data loader, a second model) are not touched. One thread launches all CUDA ops, so
// unlike on the CPU there are no workers to register. Installed once per process and never taken
// out: blocks may live on.
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

/// Memory in which served blocks lie: their release is told apart by address.
class CudaArenaRegistration {
 public:
  /// Errors: kEnvironment when there are too many.
  static ir::Error add(StepAllocator& allocator);
  static void remove(StepAllocator& allocator);
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_SERVED_CUDA_ALLOCATOR_H_
