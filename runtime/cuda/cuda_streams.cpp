// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_streams.h"

#include <c10/cuda/CUDAFunctions.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

namespace {

/// Streams that nobody uses, by device.
struct Unused {
  std::mutex mutex;
  std::map<c10::DeviceIndex, std::vector<OpStreams::Pair>> pairs;
};

Unused& unused() {
  static auto* all = new Unused();  // never destroyed: streams are released until the end
  return *all;
}

}  // namespace

ir::Expected<OpStreams> OpStreams::take() {
  const c10::DeviceIndex device = c10::cuda::current_device();
  {
    const std::lock_guard<std::mutex> lock(unused().mutex);
    std::vector<Pair>& pairs = unused().pairs[device];
    if (!pairs.empty()) {
      OpStreams taken(pairs.back());
      pairs.pop_back();
      return taken;
    }
  }
  int least = 0;
  int greatest = 0;
  cudaStream_t compute = nullptr;
  cudaStream_t link = nullptr;
  cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  if (status == cudaSuccess) {
    status = cudaStreamCreateWithPriority(&compute, cudaStreamNonBlocking, least);
  }
  if (status == cudaSuccess) {
    status = cudaStreamCreateWithPriority(&link, cudaStreamNonBlocking, greatest);
  }
  if (ir::Error error = checkCuda(status, "making streams for ops")) return error;
  return OpStreams({c10::cuda::getStreamFromExternal(compute, device),
                    c10::cuda::getStreamFromExternal(link, device)});
}

OpStreams::~OpStreams() {
  if (!pair_) return;
  const std::lock_guard<std::mutex> lock(unused().mutex);
  unused().pairs[pair_->compute.device_index()].push_back(*pair_);
}

}  // namespace stowage::runtime
