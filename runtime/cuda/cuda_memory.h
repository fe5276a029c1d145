// SPDX-License-Identifier: Apache-2.0
//
// The arena of a CUDA device: device memory at addresses of its own, returned when the object goes.
// Memory can go before, and come back to the same addresses, by the driver's virtual memory
// management. The plan has exactly the bytes asked for; the memory behind them is that rounded up
// to whole units of 2 MiB. The host arena: runtime/cuda/pinned_arena.h.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_MEMORY_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_MEMORY_H_

#include <cuda.h>

#include <cstdint>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "runtime/cuda/pinned_arena.h"
#include "runtime/ranks/descriptor_exchange.h"

namespace stowage::runtime {

/// The driver's functions for memory and addresses.
struct DriverMemory {
  decltype(&cuMemAddressReserve) reserveAddresses = nullptr;
  decltype(&cuMemAddressFree) freeAddresses = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) setAccess = nullptr;
  decltype(&cuMemRetainAllocationHandle) retain = nullptr;
  decltype(&cuMemExportToShareableHandle) exportMemory = nullptr;
  decltype(&cuMemImportFromShareableHandle) importMemory = nullptr;

  /// Errors: kUnsupported, kCuda.
  static ir::Expected<DriverMemory> find();
};

enum class MemoryUsers {
  kThisProcess,
  kRanks  // other processes of this host may map it, where the driver can do that
};

class DeviceArena {
 public:
  /// On the current device, from a multiple of 2 MiB on. Errors: kOutOfDeviceMemory with what is
  /// free; kUnsupported for a driver that cannot do it.
  static ir::Expected<DeviceArena> allocate(Bytes bytes,
                                            MemoryUsers users = MemoryUsers::kThisProcess);
  /// With it another process maps the memory, which must be for ranks. Errors: kCuda.
  ir::Expected<Descriptor> share() const;
  /// The memory goes back, the addresses stay. Nothing may be under way there. Errors: kCuda.
  ir::Error release();
  /// After `release`: other memory, with any bytes in it. Errors: as `allocate`; it can be tried
  /// again.
  ir::Error restore();
  DeviceArena(DeviceArena&& other) noexcept;
  DeviceArena& operator=(DeviceArena&&) = delete;
  ~DeviceArena();

  uint8_t* base() const { return reinterpret_cast<uint8_t*>(base_); }  // NOLINT: the driver's type
  Bytes bytes() const { return bytes_; }
  /// Device memory that it has now: whole units; none after `release`.
  Bytes memory() const { return isMapped_ ? mapped_ : Bytes(0); }

 private:
  DeviceArena(const DriverMemory& driver, int device, Bytes bytes, MemoryUsers users);
  CUresult mapMemory();
  CUresult unmap();

  DriverMemory driver_;
  int device_;
  MemoryUsers users_;
  Bytes bytes_;
  Bytes mapped_;          // in whole units
  CUdeviceptr base_ = 0;  // 0: none
  bool isMapped_ = false;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_MEMORY_H_
