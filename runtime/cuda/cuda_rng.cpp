// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_rng.h"

#include <ATen/cuda/CUDAGeneratorImpl.h>

#include <cstdint>
#include <mutex>

namespace stowage::runtime {

namespace {

/// How far an op moves the offset differs by op and is never computed, only read.
struct CudaRngState {
  uint64_t seed = 0;
  uint64_t offset = 0;

  static CudaRngState take() {
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    auto* own = generator.get<at::CUDAGeneratorImpl>();
    return {own->current_seed(), own->philox_offset_per_thread()};
  }
  void put() const {
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    auto* own = generator.get<at::CUDAGeneratorImpl>();
    own->set_current_seed(seed);  // sets the offset to 0
    own->set_philox_offset_per_thread(offset);
  }
};

}  // namespace

std::unique_ptr<RngKeeper> makeCudaRngKeeper() {
  return std::make_unique<SlottedRngKeeper<CudaRngState>>();
}

}  // namespace stowage::runtime
