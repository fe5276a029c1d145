// SPDX-License-Identifier: Apache-2.0
//
// What the links between a GPU and pinned host memory carry, beside updates on the host as well,
// and the launch overhead of a copy.
#ifndef STOWAGE_RUNTIME_CUDA_LINK_BENCH_H_
#define STOWAGE_RUNTIME_CUDA_LINK_BENCH_H_

#include "ir/base/error.h"
#include "ir/schedule/target.h"

namespace stowage::runtime {

/// Pinned copies of 256 MiB, each direction alone and both at once; the latency is that of a copy
/// of 512 bytes. Launch overhead is that of such copies on two streams that wait for each other.
/// The best of five each time. Updates on the host: host_update_bench.h. Errors:
/// kOutOfDeviceMemory, kCuda, kTorch.
ir::Expected<ir::LinkModel> measureCudaLinks();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_LINK_BENCH_H_
