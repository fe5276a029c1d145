// SPDX-License-Identifier: Apache-2.0
//
// Converts CUDA's status codes into ir::Error.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_STATUS_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "ir/base/error.h"

namespace stowage::runtime {

/// Success, or an error that says what was tried: kOutOfDeviceMemory for cudaErrorMemoryAllocation,
/// kCuda otherwise.
inline ir::Error checkCuda(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return ir::success();
  // An error that is not sticky would come back from the next unrelated call.
  (void)cudaGetLastError();
  return ir::makeError(
      status == cudaErrorMemoryAllocation ? ir::ErrorCode::kOutOfDeviceMemory
                                          : ir::ErrorCode::kCuda,
      what + ": CUDA says '" + cudaGetErrorString(status) + "' (" + cudaGetErrorName(status) + ")");
}

/// llvm::consumeError knows only errors of its own copy of LLVM, and this library has one.
inline void dropError(ir::Error error) {
  if (error) (void)ir::takePayload(std::move(error));
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_STATUS_H_
