// SPDX-License-Identifier: Apache-2.0
//
// NCCL's functions, found in the library that libtorch has loaded. No header of NCCL takes part:
// what is used of it has been the same since its version 2.7.
#ifndef STOWAGE_RUNTIME_CUDA_NCCL_FUNCTIONS_H_
#define STOWAGE_RUNTIME_CUDA_NCCL_FUNCTIONS_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <string>

#include "ir/base/error.h"

namespace stowage::runtime {

using NcclComm = void*;  // ncclComm_t
using NcclStatus = int;  // ncclResult_t; 0: success
struct NcclId {          // ncclUniqueId
  std::array<char, 128> bytes;
};
inline constexpr int kNcclBytes = 1;  // ncclUint8

struct NcclFunctions {
  NcclStatus (*getId)(NcclId* id);
  NcclStatus (*join)(NcclComm* comm, int count, NcclId id, int rank);
  NcclStatus (*leave)(NcclComm comm);
  /// Also ends what is under way.
  NcclStatus (*abort)(NcclComm comm);
  NcclStatus (*allGather)(const void* own, void* all, size_t count, int type, NcclComm comm,
                          cudaStream_t stream);
  NcclStatus (*send)(const void* from, size_t count, int type, int rank, NcclComm comm,
                     cudaStream_t stream);
  NcclStatus (*receive)(void* to, size_t count, int type, int rank, NcclComm comm,
                        cudaStream_t stream);
  NcclStatus (*beginGroup)();
  NcclStatus (*endGroup)();
  const char* (*statusText)(NcclStatus status);
};

/// Errors: kEnvironment where there is no NCCL.
ir::Expected<NcclFunctions> findNccl();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_NCCL_FUNCTIONS_H_
