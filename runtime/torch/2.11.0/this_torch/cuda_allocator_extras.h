// SPDX-License-Identifier: Apache-2.0
//
// What the allocator for CUDA has in torch 2.11.0 and in no other version: nothing.
#ifndef STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_CUDA_ALLOCATOR_EXTRAS_H_
#define STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_CUDA_ALLOCATOR_EXTRAS_H_

#include <c10/cuda/CUDACachingAllocator.h>

namespace stowage::runtime {

/// Passes on to `inner` what only this version asks for.
class CudaAllocatorExtras : public c10::cuda::CUDACachingAllocator::CUDAAllocator {
 protected:
  explicit CudaAllocatorExtras(CUDAAllocator* inner) : inner_(inner) {}
  CUDAAllocator* inner_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_CUDA_ALLOCATOR_EXTRAS_H_
