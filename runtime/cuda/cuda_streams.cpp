// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_streams.h"

#include <c10/cuda/CUDAFunctions.h>

#include <map>
#include <mutex>

#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

ir::Expected<OpStreams> OpStreams::find() {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, OpStreams> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const c10::DeviceIndex device = c10::cuda::current_device();
  if (const auto found = known.find(device); found != known.end()) return found->second;
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
  const OpStreams made{c10::cuda::getStreamFromExternal(compute, device),
                       c10::cuda::getStreamFromExternal(link, device)};
  known.emplace(device, made);
  return made;
}

}  // namespace stowage::runtime
