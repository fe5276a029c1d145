// SPDX-License-Identifier: Apache-2.0
//
// Device memory that this process uses, as the driver's management library (NVML) counts it, and
// what the driver takes for it beside that count. Where NVML does not know this process (in some
// containers): what all processes use, less what they used before CUDA made a context here.
#ifndef STOWAGE_RUNTIME_CUDA_USED_MEMORY_H_
#define STOWAGE_RUNTIME_CUDA_USED_MEMORY_H_

#include <optional>
#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"

namespace stowage::runtime {

/// Called once, before CUDA is first used: makes its context, and notes what that took.
void noteContext();
/// Of the driver: "580.159.04". Nothing when NVML is not there.
std::optional<std::string> driverVersion();
/// Whether NVML does not tell what this process uses, so that others are in memoryOutside().
bool countsWholeDevice();
/// What this process uses on the first GPU that it may use, beyond `arena`: context, kernels,
/// libraries. Nothing when NVML is not there or does not tell.
std::optional<Bytes> memoryOutside(Bytes arena);
/// Whether an arena and `outside` bytes beside it are free, what this process has taken already
/// counted in. Errors: kOutOfDeviceMemory with all sizes; kCuda.
ir::Error checkRoom(Bytes arena, Bytes outside);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_USED_MEMORY_H_
