// SPDX-License-Identifier: Apache-2.0
//
// Bytes between the caller's memory and the host arena, as work of a stream.
#ifndef STOWAGE_RUNTIME_CUDA_HAND_OVER_H_
#define STOWAGE_RUNTIME_CUDA_HAND_OVER_H_

#include <cuda_runtime_api.h>
#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <cstring>
#include <memory>

namespace stowage::runtime {

/// Copies `to.size()` bytes when the stream comes to it.
inline cudaError_t handOver(cudaStream_t stream, const uint8_t* from,
                            llvm::MutableArrayRef<uint8_t> to) {
  struct Given {
    const uint8_t* from;
    llvm::MutableArrayRef<uint8_t> to;
  };
  auto given = std::make_unique<Given>(Given{from, to});
  const auto copy = [](void* data) {
    const std::unique_ptr<Given> own(static_cast<Given*>(data));
    std::memcpy(own->to.data(), own->from, own->to.size());
  };
  const cudaError_t status = cudaLaunchHostFunc(stream, copy, given.get());
  if (status == cudaSuccess) (void)given.release();
  return status;
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_HAND_OVER_H_
