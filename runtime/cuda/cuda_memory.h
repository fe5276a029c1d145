// SPDX-License-Identifier: Apache-2.0
//
// The arena of a CUDA device: one allocation of exactly the bytes asked for, returned when the
// object goes. Its host arena: runtime/cuda/pinned_arena.h.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_MEMORY_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_MEMORY_H_

#include <cstdint>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "runtime/cuda/pinned_arena.h"

namespace stowage::runtime {

/// Bytes of `cudaMalloc`, at an address that is a multiple of 2 MiB.
class DeviceArena {
 public:
  /// Errors: kOutOfDeviceMemory with what is free.
  static ir::Expected<DeviceArena> allocate(Bytes bytes);
  DeviceArena(DeviceArena&& other) noexcept;
  DeviceArena& operator=(DeviceArena&&) = delete;
  ~DeviceArena();

  uint8_t* base() const { return base_; }
  Bytes bytes() const { return bytes_; }

 private:
  DeviceArena(uint8_t* base, Bytes bytes) : base_(base), bytes_(bytes) {}
  uint8_t* base_;
  Bytes bytes_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_MEMORY_H_
