// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/peer_memory.h"

#include <cuda_runtime_api.h>
#include <llvm/ADT/STLExtras.h>

#include <cstring>
#include <utility>

#include "runtime/cuda/cuda_status.h"
#include "runtime/ranks/descriptor_exchange.h"

namespace stowage::runtime {

namespace {

/// Every rank's number, in rank order.
ir::Expected<std::vector<int64_t>> gatherNumbers(Communicator& between, int64_t own) {
  std::vector<int64_t> all(static_cast<size_t>(between.count()));
  if (ir::Error error =
          between.allGather({reinterpret_cast<const uint8_t*>(&own), sizeof own},
                            {reinterpret_cast<uint8_t*>(all.data()), all.size() * sizeof own})) {
    return error;
  }
  return all;
}

CUdeviceptr addressOf(uint8_t* base) { return reinterpret_cast<CUdeviceptr>(base); }

}  // namespace

ir::Expected<std::optional<PeerMemory>> PeerMemory::join(Communicator& between,
                                                         const DeviceArena& own) {
  ir::Expected<Descriptor> shared = own.share();
  if (!shared) dropError(shared.takeError());
  const int descriptor = shared ? shared->get() : -1;
  ir::Expected<std::vector<int64_t>> sizes = gatherNumbers(between, own.memory().value());
  if (!sizes) return sizes.takeError();
  const bool areAlike = llvm::all_of(*sizes, [&](int64_t size) { return size == sizes->front(); });
  if (!areAlike) return std::nullopt;
  ir::Expected<std::optional<RankDescriptors>> all = exchangeDescriptors(between, descriptor);
  if (!all) return all.takeError();
  if (!*all) return std::nullopt;
  ir::Expected<DriverMemory> driver = DriverMemory::find();
  if (!driver) return driver.takeError();
  PeerMemory memory(*driver, own, between.rank(), between.count());
  bool isMapped = true;
  for (int32_t rank = 0; isMapped && rank < between.count(); ++rank) {
    if (rank == between.rank()) continue;
    isMapped = memory.map(rank, (**all)[static_cast<size_t>(rank)].front().get());
  }
  ir::Expected<bool> areMapped = between.isOnAll(isMapped);
  if (!areMapped) return areMapped.takeError();
  if (!*areMapped) return std::nullopt;
  return memory;
}

PeerMemory::PeerMemory(const DriverMemory& driver, const DeviceArena& own, int32_t rank,
                       int32_t count)
    : driver_(driver),
      bytes_(static_cast<size_t>(own.memory().value())),
      rank_(rank),
      bases_(static_cast<size_t>(count), nullptr) {
  bases_[static_cast<size_t>(rank)] = own.base();
}

bool PeerMemory::map(int32_t rank, int descriptor) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return false;
  CUmemGenericAllocationHandle memory = 0;
  // By the driver's convention, the number of the descriptor as an address.
  void* handle = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));  // NOLINT
  if (driver_.importMemory(&memory, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) !=
      CUDA_SUCCESS) {
    return false;
  }
  CUdeviceptr base = 0;
  bool isMapped = driver_.reserveAddresses(&base, bytes_, 0, 0, 0) == CUDA_SUCCESS;
  if (isMapped && driver_.map(base, bytes_, 0, memory, 0) != CUDA_SUCCESS) {
    (void)driver_.freeAddresses(base, bytes_);
    isMapped = false;
  }
  (void)driver_.release(memory);  // it stays as long as it is mapped
  if (!isMapped) return false;
  bases_[static_cast<size_t>(rank)] = reinterpret_cast<uint8_t*>(base);  // NOLINT
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return driver_.setAccess(base, bytes_, &access, 1) == CUDA_SUCCESS;
}

PeerMemory::PeerMemory(PeerMemory&& other) noexcept
    : driver_(other.driver_),
      bytes_(other.bytes_),
      rank_(other.rank_),
      bases_(std::exchange(other.bases_, {})) {}

PeerMemory::~PeerMemory() {
  for (size_t rank = 0; rank < bases_.size(); ++rank) {
    if (bases_[rank] == nullptr || rank == static_cast<size_t>(rank_)) continue;
    (void)driver_.unmap(addressOf(bases_[rank]), bytes_);
    (void)driver_.freeAddresses(addressOf(bases_[rank]), bytes_);
  }
}

}  // namespace stowage::runtime
