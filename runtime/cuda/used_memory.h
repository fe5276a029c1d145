// SPDX-License-Identifier: Apache-2.0
//
// Device memory that is in use, by whatever process, as the driver's management library (NVML)
// counts it: it can be asked before CUDA makes a context, so that what contexts, kernels and
// libraries take can be told from what was there before.
#ifndef STOWAGE_RUNTIME_CUDA_USED_MEMORY_H_
#define STOWAGE_RUNTIME_CUDA_USED_MEMORY_H_

#include <optional>

#include "ir/error.h"
#include "ir/units.h"

namespace stowage::runtime {

/// Called once, before CUDA is first used.
void noteMemoryAtStart();
/// What is in use on the first GPU that this process may use, beyond that at start and beyond
/// `arena`. Nothing when NVML is not there or does not tell.
std::optional<Bytes> memoryOutside(Bytes arena);
/// Whether an arena and `outside` bytes beside it are free, what this process has taken already
/// counted in. Errors: kOutOfDeviceMemory with all sizes; kCuda.
ir::Error checkRoom(Bytes arena, Bytes outside);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_USED_MEMORY_H_
