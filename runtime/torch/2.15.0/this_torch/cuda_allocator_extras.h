// SPDX-License-Identifier: Apache-2.0
//
// What the allocator for CUDA has in torch 2.15.0 and in no version before.
#ifndef STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_CUDA_ALLOCATOR_EXTRAS_H_
#define STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_CUDA_ALLOCATOR_EXTRAS_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <memory>
#include <string>
#include <utility>

namespace stowage::runtime {

/// Passes on to `inner` what only this version asks for.
class CudaAllocatorExtras : public c10::cuda::CUDACachingAllocator::CUDAAllocator {
 public:
  // A recorded graph tells when it begins and ends, so that blocks freed meanwhile wait.
  void markCaptureBegin(c10::DeviceIndex device) override { inner_->markCaptureBegin(device); }
  void markCaptureEnd(c10::DeviceIndex device) override { inner_->markCaptureEnd(device); }
  void attachOomRejectionObserver(
      c10::cuda::CUDACachingAllocator::OomRejectionObserver observer) override {
    inner_->attachOomRejectionObserver(std::move(observer));
  }
  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* address) override {
    return inner_->getContextForPointer(address);
  }
  bool supportsUserMetadata() override { return inner_->supportsUserMetadata(); }
  void annotateMemory(const void* address, const std::string& metadata) override {
    inner_->annotateMemory(address, metadata);
  }
  c10::DataPtr allocateWithAddress(size_t bytes, void* address) override {
    return inner_->allocateWithAddress(bytes, address);
  }

 protected:
  explicit CudaAllocatorExtras(CUDAAllocator* inner) : inner_(inner) {}
  CUDAAllocator* inner_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_CUDA_ALLOCATOR_EXTRAS_H_
