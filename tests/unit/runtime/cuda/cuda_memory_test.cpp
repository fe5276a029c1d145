// SPDX-License-Identifier: Apache-2.0
//
// The device arena's memory goes and comes while its addresses stay. The driver is this file's: a
// GPU of 64 MiB in host memory that knows what is mapped, and refuses what a driver refuses.
#include "runtime/cuda/cuda_memory.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "tests/support/or_fail.h"

namespace {

constexpr size_t kUnit = size_t{2} << 20;
constexpr size_t kAll = 32 * kUnit;

struct FakeGpu {
  size_t free = kAll;
  std::map<CUmemGenericAllocationHandle, size_t> memories;  // that have a handle
  std::map<CUdeviceptr, size_t> reserved;
  std::map<CUdeviceptr, size_t> mapped;
  bool refusesAccess = false;
  CUmemGenericAllocationHandle next = 1;
};
FakeGpu gpu;  // of one test after the other

void* at(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUresult reserve(CUdeviceptr* base, size_t size, size_t alignment, CUdeviceptr /*at*/,
                 unsigned long long /*flags*/) {  // NOLINT: theirs
  if (size == 0 || size % kUnit != 0 || alignment != kUnit) return CUDA_ERROR_INVALID_VALUE;
  // What the alignment leaves over stays closed.
  void* room = mmap(nullptr, size + kUnit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *base = (reinterpret_cast<CUdeviceptr>(room) + kUnit - 1) / kUnit * kUnit;
  gpu.reserved[*base] = size;
  return CUDA_SUCCESS;
}
CUresult freeAddresses(CUdeviceptr base, size_t size) {
  const auto range = gpu.reserved.find(base);
  if (range == gpu.reserved.end() || range->second != size || gpu.mapped.count(base) > 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  gpu.reserved.erase(range);
  return CUDA_SUCCESS;
}
CUresult create(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* kind,
                unsigned long long /*flags*/) {  // NOLINT: theirs
  const bool isDevice = kind->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
                        kind->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (size % kUnit != 0 || !isDevice) return CUDA_ERROR_INVALID_VALUE;
  if (size > gpu.free) return CUDA_ERROR_OUT_OF_MEMORY;
  gpu.free -= size;
  *handle = gpu.next++;
  gpu.memories[*handle] = size;
  return CUDA_SUCCESS;
}
CUresult releaseHandle(CUmemGenericAllocationHandle handle) {
  const auto memory = gpu.memories.find(handle);
  if (memory == gpu.memories.end()) return CUDA_ERROR_INVALID_VALUE;
  gpu.memories.erase(memory);  // mapped memory stays: the arena maps all that it makes
  return CUDA_SUCCESS;
}
CUresult map(CUdeviceptr base, size_t size, size_t /*offset*/, CUmemGenericAllocationHandle handle,
             unsigned long long /*flags*/) {  // NOLINT: theirs
  const bool fits = gpu.reserved.count(base) > 0 && gpu.reserved[base] == size &&
                    gpu.memories.count(handle) > 0 && gpu.memories[handle] == size;
  if (!fits || gpu.mapped.count(base) > 0) return CUDA_ERROR_INVALID_VALUE;
  gpu.mapped[base] = size;
  return CUDA_SUCCESS;
}
CUresult unmap(CUdeviceptr base, size_t size) {
  const auto range = gpu.mapped.find(base);
  if (range == gpu.mapped.end() || range->second != size) return CUDA_ERROR_INVALID_VALUE;
  gpu.mapped.erase(range);
  gpu.free += size;
  mmap(at(base), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}
CUresult setAccess(CUdeviceptr base, size_t size, const CUmemAccessDesc* access, size_t count) {
  if (gpu.refusesAccess) return CUDA_ERROR_OUT_OF_MEMORY;
  const bool isRight = gpu.mapped.count(base) > 0 && count == 1 &&
                       access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (!isRight) return CUDA_ERROR_INVALID_VALUE;
  mprotect(at(base), size, PROT_READ | PROT_WRITE);
  return CUDA_SUCCESS;
}

// A driver that shares no memory between processes.
CUresult retain(CUmemGenericAllocationHandle* handle, void* /*at*/) {
  *handle = gpu.next++;
  gpu.memories[*handle] = 0;
  return CUDA_SUCCESS;
}
CUresult exportMemory(void* /*shareable*/, CUmemGenericAllocationHandle /*handle*/,
                      CUmemAllocationHandleType /*type*/,
                      unsigned long long /*flags*/) {  // NOLINT: theirs
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult importMemory(CUmemGenericAllocationHandle* /*handle*/, void* /*shareable*/,
                      CUmemAllocationHandleType /*type*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

extern "C" {
cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(
    const char* name, void** function, unsigned /*version*/, unsigned long long /*flags*/,
    cudaDriverEntryPointQueryResult* result) {  // NOLINT: theirs
  static const std::map<std::string, void*> all = {
      {"cuMemAddressReserve", reinterpret_cast<void*>(&reserve)},
      {"cuMemAddressFree", reinterpret_cast<void*>(&freeAddresses)},
      {"cuMemCreate", reinterpret_cast<void*>(&create)},
      {"cuMemRelease", reinterpret_cast<void*>(&releaseHandle)},
      {"cuMemMap", reinterpret_cast<void*>(&map)},
      {"cuMemUnmap", reinterpret_cast<void*>(&unmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(&setAccess)},
      {"cuMemRetainAllocationHandle", reinterpret_cast<void*>(&retain)},
      {"cuMemExportToShareableHandle", reinterpret_cast<void*>(&exportMemory)},
      {"cuMemImportFromShareableHandle", reinterpret_cast<void*>(&importMemory)}};
  *function = all.at(name);
  *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaFree(void* /*memory*/) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaMemGetInfo(size_t* free, size_t* all) {
  *free = gpu.free;
  *all = kAll;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetLastError() { return cudaSuccess; }
const char* CUDARTAPI cudaGetErrorString(cudaError_t /*error*/) { return "no"; }
const char* CUDARTAPI cudaGetErrorName(cudaError_t /*error*/) { return "no"; }
}

namespace stowage::runtime {
namespace {

using namespace literals;

class CudaMemory : public testing::Test {
 protected:
  CudaMemory() { gpu = {}; }
  ~CudaMemory() override {
    EXPECT_EQ(gpu.free, kAll);
    EXPECT_TRUE(gpu.memories.empty());
    EXPECT_TRUE(gpu.reserved.empty());
  }
};

void writeAll(const DeviceArena& arena) {
  std::memset(arena.base(), 7, static_cast<size_t>(arena.bytes().value()));
}

ir::PlanError errorOf(ir::Error error) {
  EXPECT_TRUE(static_cast<bool>(error)) << "expected an error";
  return error ? ir::takePayload(std::move(error)) : ir::PlanError(ir::ErrorCode::kInternal, "");
}

TEST_F(CudaMemory, TakesWholeUnitsAndGivesExactlyTheBytes) {
  for (const Bytes bytes : {1_B, 2_MiB, 2_MiB + 1_B, 63_MiB}) {
    const DeviceArena arena = tests::orFail(DeviceArena::allocate(bytes));
    EXPECT_EQ(arena.bytes(), bytes);
    EXPECT_EQ(arena.memory(), roundUp(bytes, kUnit));
    EXPECT_EQ(gpu.free, kAll - static_cast<size_t>(arena.memory().value()));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.base()) % kUnit, 0U);
    writeAll(arena);
  }
}

TEST_F(CudaMemory, GoesAndComesBackToTheSameAddresses) {
  DeviceArena arena = tests::orFail(DeviceArena::allocate(9_MiB));
  uint8_t* const base = arena.base();
  for (int i = 0; i < 3; ++i) {
    tests::orFail(arena.release());
    EXPECT_EQ(arena.memory(), 0_B);
    EXPECT_EQ(gpu.free, kAll);
    tests::orFail(arena.restore());
    EXPECT_EQ(arena.base(), base);
    EXPECT_EQ(arena.memory(), 10_MiB);
    writeAll(arena);
  }
}

TEST_F(CudaMemory, ThatSomethingElseHasComesBackLater) {
  DeviceArena arena = tests::orFail(DeviceArena::allocate(40_MiB));
  tests::orFail(arena.release());
  {
    const DeviceArena other = tests::orFail(DeviceArena::allocate(30_MiB));
    for (int i = 0; i < 2; ++i) {
      const ir::PlanError error = errorOf(arena.restore());
      EXPECT_EQ(error.code(), ir::ErrorCode::kOutOfDeviceMemory);
      EXPECT_NE(error.text().find("could not restore the device arena of 40.00 MiB"),
                std::string::npos)
          << error.text();
      EXPECT_NE(error.text().find("34.00 MiB"), std::string::npos) << error.text();
    }
  }
  tests::orFail(arena.restore());
  writeAll(arena);
}

TEST_F(CudaMemory, ThatCannotBeReachedGoesBack) {
  DeviceArena arena = tests::orFail(DeviceArena::allocate(8_MiB));
  tests::orFail(arena.release());
  gpu.refusesAccess = true;
  EXPECT_EQ(errorOf(arena.restore()).code(), ir::ErrorCode::kOutOfDeviceMemory);
  EXPECT_EQ(gpu.free, kAll);
  gpu.refusesAccess = false;
  tests::orFail(arena.restore());
}

TEST_F(CudaMemory, MoreThanThereIsIsRefused) {
  ir::Expected<DeviceArena> arena = DeviceArena::allocate(65_MiB);
  ASSERT_FALSE(static_cast<bool>(arena));
  EXPECT_EQ(errorOf(arena.takeError()).code(), ir::ErrorCode::kOutOfDeviceMemory);
}

TEST_F(CudaMemory, OfAReleasedArenaThatGoesIsNotGivenBackTwice) {
  DeviceArena arena = tests::orFail(DeviceArena::allocate(8_MiB));
  tests::orFail(arena.release());
  EXPECT_EQ(errorOf(arena.release()).code(), ir::ErrorCode::kCuda);
  EXPECT_EQ(gpu.free, kAll);
}

// Ranks then exchange in another way.
TEST_F(CudaMemory, ThatADriverCannotShareIsNotShared) {
  const DeviceArena arena = tests::orFail(DeviceArena::allocate(1_B, MemoryUsers::kRanks));
  ir::Expected<Descriptor> shared = arena.share();
  ASSERT_FALSE(static_cast<bool>(shared));
  const ir::PlanError error = ir::takePayload(shared.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kCuda);
  EXPECT_NE(error.text().find("could not share the device arena"), std::string::npos);
}

}  // namespace
}  // namespace stowage::runtime
