// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of the GPU that repeat. The state of libtorch's CUDA generator is two numbers on
// the host, read when a kernel is launched: kept and put back by the launching thread.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_RNG_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_RNG_H_

#include <ATen/cuda/CUDAGraph.h>

#include <memory>

#include "runtime/torch/rng_keeper.h"

namespace stowage::runtime {

/// For the default generator of the current CUDA device.
std::unique_ptr<RngKeeper> makeCudaRngKeeper();

/// Before `graph` is recorded: it draws from that generator, and a replay goes on from there.
void registerRandomNumbers(at::cuda::CUDAGraph& graph);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_RNG_H_
