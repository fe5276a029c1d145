// SPDX-License-Identifier: Apache-2.0
//
// CUDA's status codes as ir::Error, and sizes as messages give them.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_STATUS_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "ir/base/error.h"
#include "ir/base/units.h"

namespace stowage::runtime {

/// As messages give it, exact: "1.0 GiB (1073741825 bytes)".
inline std::string sizeText(Bytes bytes) {
  return formatBytes(bytes) + " (" + std::to_string(bytes.value()) + " bytes)";
}

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
