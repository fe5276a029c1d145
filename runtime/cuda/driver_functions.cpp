// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/driver_functions.h"

#include <cuda.h>

#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

ir::Expected<void*> findDriverFunction(const char* name, const std::string& purpose) {
  constexpr unsigned kSince = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &function, kSince, cudaEnableDefault, &result);
  if (ir::Error error = checkCuda(status, std::string("finding ") + name)) return error;
  if (result == cudaDriverEntryPointSuccess && function != nullptr) return function;
  return ir::makeError(ir::ErrorCode::kUnsupported,
                       std::string("the driver has no ") + name + ", " + purpose);
}

}  // namespace stowage::runtime
