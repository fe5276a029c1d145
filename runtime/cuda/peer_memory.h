// SPDX-License-Identifier: Apache-2.0
//
// Memory of the GPUs of all ranks of one host, at addresses of this process.
#ifndef STOWAGE_RUNTIME_CUDA_PEER_MEMORY_H_
#define STOWAGE_RUNTIME_CUDA_PEER_MEMORY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/error.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/ranks/communicator.h"

namespace stowage::runtime {

class PeerMemory {
 public:
  /// `own` is for ranks, and as large on all of them. nullopt, on all ranks alike, where one of
  /// them does not reach another's: several hosts, GPUs without access to each other, another
  /// size. Collective. Errors: kEnvironment, as Communicator::allGather.
  static ir::Expected<std::optional<PeerMemory>> join(Communicator& between,
                                                      const DeviceArena& own);
  PeerMemory(PeerMemory&& other) noexcept;
  PeerMemory& operator=(PeerMemory&&) = delete;
  ~PeerMemory();

  /// First byte of the memory of a rank; of this rank's, too.
  uint8_t* of(int32_t rank) const { return bases_[static_cast<size_t>(rank)]; }

 private:
  PeerMemory(const DriverMemory& driver, const DeviceArena& own, int32_t rank, int32_t count);
  /// Of another rank. False: it cannot.
  bool map(int32_t rank, int descriptor);

  DriverMemory driver_;
  size_t bytes_;
  int32_t rank_;
  std::vector<uint8_t*> bases_;  // null: not mapped
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_PEER_MEMORY_H_
