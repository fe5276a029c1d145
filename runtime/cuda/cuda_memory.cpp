// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_memory.h"

#include <utility>

#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

namespace {

constexpr uintptr_t kArenaAlignment = uintptr_t{2} << 20;

}  // namespace

ir::Expected<DeviceArena> DeviceArena::allocate(Bytes bytes) {
  void* base = nullptr;
  const cudaError_t status = cudaMalloc(&base, static_cast<size_t>(bytes.value()));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    size_t free = 0;
    size_t all = 0;
    (void)cudaMemGetInfo(&free, &all);
    return ir::makeError(ir::ErrorCode::kOutOfDeviceMemory,
                         "could not allocate the device arena of " + sizeText(bytes) +
                             ": the device has " + sizeText(Bytes(static_cast<int64_t>(free))) +
                             " free of " + formatBytes(Bytes(static_cast<int64_t>(all))));
  }
  if (ir::Error error = checkCuda(status, "allocating the device arena")) return error;
  DeviceArena arena(static_cast<uint8_t*>(base), bytes);
  if (reinterpret_cast<uintptr_t>(base) % kArenaAlignment != 0) {
    return ir::makeError(ir::ErrorCode::kCuda,
                         "the device arena is not aligned to 2 MiB, as large allocations are");
  }
  return arena;
}

DeviceArena::DeviceArena(DeviceArena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, Bytes(0))) {}

DeviceArena::~DeviceArena() {
  if (base_ != nullptr) (void)cudaFree(base_);
}

}  // namespace stowage::runtime
