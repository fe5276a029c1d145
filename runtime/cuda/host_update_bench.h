// SPDX-License-Identifier: Apache-2.0
//
// What updates on the host and copies leave each other of the host's memory.
#ifndef STOWAGE_RUNTIME_CUDA_HOST_UPDATE_BENCH_H_
#define STOWAGE_RUNTIME_CUDA_HOST_UPDATE_BENCH_H_

#include "ir/base/error.h"
#include "ir/base/units.h"

namespace stowage::runtime {

struct HostUpdateRates {
  BytesPerSecond updates;       // bytes that updates read and write while copies run both ways
  int prefetchPermille = 1000;  // what copies to the device keep of their rate beside updates
};

/// Fused AdamW on bf16 tensors in pinned memory, by the team that updates have (host_ops.h), beside
/// copies of 128 MiB in both directions; half a second. Errors: kOutOfDeviceMemory, kCuda, kTorch.
ir::Expected<HostUpdateRates> measureHostUpdates();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_HOST_UPDATE_BENCH_H_
