// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/driver_functions.h"

namespace stowage::runtime {

namespace {

// The granularity of device memory on every GPU that there is.
constexpr int64_t kUnit = int64_t{2} << 20;

ir::Error explain(CUresult status, const char* what, Bytes bytes) {
  if (status == CUDA_SUCCESS) return ir::success();
  const std::string failed =
      std::string("could not ") + what + " the device arena of " + sizeText(bytes) + ": ";
  if (status != CUDA_ERROR_OUT_OF_MEMORY) {
    return ir::makeError(ir::ErrorCode::kCuda,
                         failed + "the driver says " + std::to_string(status) + " (CUresult)");
  }
  size_t free = 0;
  size_t all = 0;
  (void)cudaMemGetInfo(&free, &all);
  return ir::makeError(ir::ErrorCode::kOutOfDeviceMemory,
                       failed + "the device has " + sizeText(Bytes(static_cast<int64_t>(free))) +
                           " free of " + formatBytes(Bytes(static_cast<int64_t>(all))));
}

}  // namespace

ir::Expected<DriverMemory> DriverMemory::find() {
  DriverMemory driver;
  const std::pair<const char*, void**> wanted[] = {
      {"cuMemAddressReserve", reinterpret_cast<void**>(&driver.reserveAddresses)},
      {"cuMemAddressFree", reinterpret_cast<void**>(&driver.freeAddresses)},
      {"cuMemCreate", reinterpret_cast<void**>(&driver.create)},
      {"cuMemRelease", reinterpret_cast<void**>(&driver.release)},
      {"cuMemMap", reinterpret_cast<void**>(&driver.map)},
      {"cuMemUnmap", reinterpret_cast<void**>(&driver.unmap)},
      {"cuMemSetAccess", reinterpret_cast<void**>(&driver.setAccess)},
      {"cuMemRetainAllocationHandle", reinterpret_cast<void**>(&driver.retain)},
      {"cuMemExportToShareableHandle", reinterpret_cast<void**>(&driver.exportMemory)},
      {"cuMemImportFromShareableHandle", reinterpret_cast<void**>(&driver.importMemory)}};
  for (const auto& [name, function] : wanted) {
    ir::Expected<void*> found =
        findDriverFunction(name, "with which device memory gets addresses that stay");
    if (!found) return found.takeError();
    *function = *found;
  }
  return driver;
}

ir::Expected<DeviceArena> DeviceArena::allocate(Bytes bytes, MemoryUsers users) {
  int device = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaFree(nullptr);  // the driver's functions need a context
  if (ir::Error error = checkCuda(status, "finding the device of the arena")) return error;
  ir::Expected<DriverMemory> driver = DriverMemory::find();
  if (!driver) return driver.takeError();
  DeviceArena arena(*driver, device, bytes, users);
  const auto size = static_cast<size_t>(arena.mapped_.value());
  const CUresult reserved = driver->reserveAddresses(&arena.base_, size, kUnit, 0, 0);
  if (ir::Error error = explain(reserved, "reserve addresses for", bytes)) return error;
  if (ir::Error error = explain(arena.mapMemory(), "allocate", bytes)) return error;
  return arena;
}

DeviceArena::DeviceArena(const DriverMemory& driver, int device, Bytes bytes, MemoryUsers users)
    : driver_(driver),
      device_(device),
      users_(users),
      bytes_(bytes),
      mapped_(roundUp(std::max(bytes, Bytes(1)), kUnit)) {}

CUresult DeviceArena::mapMemory() {
  const auto size = static_cast<size_t>(mapped_.value());
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  if (users_ == MemoryUsers::kRanks) {
    kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  CUmemGenericAllocationHandle memory = 0;
  CUresult status = driver_.create(&memory, size, &kind, 0);
  if (status == CUDA_ERROR_NOT_SUPPORTED && users_ == MemoryUsers::kRanks) {
    kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;  // `share` will say so
    status = driver_.create(&memory, size, &kind, 0);
  }
  if (status != CUDA_SUCCESS) return status;
  status = driver_.map(base_, size, 0, memory, 0);
  isMapped_ = status == CUDA_SUCCESS;
  (void)driver_.release(memory);  // it stays as long as it is mapped
  if (!isMapped_) return status;
  const CUmemAccessDesc access{kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  status = driver_.setAccess(base_, size, &access, 1);
  if (status != CUDA_SUCCESS) (void)unmap();
  return status;
}

ir::Expected<Descriptor> DeviceArena::share() const {
  CUmemGenericAllocationHandle memory = 0;
  CUresult status = driver_.retain(&memory, base());
  if (ir::Error error = explain(status, "share", bytes_)) return error;
  int descriptor = -1;
  status = driver_.exportMemory(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  (void)driver_.release(memory);
  if (ir::Error error = explain(status, "share", bytes_)) return error;
  return Descriptor(descriptor);
}

CUresult DeviceArena::unmap() {
  const CUresult status = driver_.unmap(base_, static_cast<size_t>(mapped_.value()));
  if (status == CUDA_SUCCESS) isMapped_ = false;
  return status;
}

ir::Error DeviceArena::release() { return explain(unmap(), "release", bytes_); }

ir::Error DeviceArena::restore() {
  return isMapped_ ? ir::success() : explain(mapMemory(), "restore", bytes_);
}

DeviceArena::DeviceArena(DeviceArena&& other) noexcept
    : driver_(other.driver_),
      device_(other.device_),
      users_(other.users_),
      bytes_(other.bytes_),
      mapped_(other.mapped_),
      base_(std::exchange(other.base_, 0)),
      isMapped_(std::exchange(other.isMapped_, false)) {}

DeviceArena::~DeviceArena() {
  if (base_ == 0) return;
  if (isMapped_) (void)unmap();
  (void)driver_.freeAddresses(base_, static_cast<size_t>(mapped_.value()));
}

}  // namespace stowage::runtime
