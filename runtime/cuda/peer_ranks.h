// SPDX-License-Identifier: Apache-2.0
//
// GPUs of one host, each of which reads what it wants from the arenas of the others. All ranks run
// one plan, so a tensor has the same offset in each arena. Copy engines do it: no kernel takes part
// that would wait for processors, or take them from compute.
#ifndef STOWAGE_RUNTIME_CUDA_PEER_RANKS_H_
#define STOWAGE_RUNTIME_CUDA_PEER_RANKS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "runtime/cuda/gpu_ranks.h"
#include "runtime/cuda/peer_memory.h"
#include "runtime/cuda/rank_signals.h"

namespace stowage::runtime {

class PeerRanks : public GpuRanks {
 public:
  /// Null, on all ranks alike, where they do not reach each other's memory, or do not find there
  /// what its owner has written. Errors: of GpuRanks::join.
  static ir::Expected<std::unique_ptr<PeerRanks>> join(const TrainingRanks& ranks,
                                                       const DeviceArena& arena);

  ir::Error allGather(const at::Tensor& own, const at::Tensor& all) override;
  ir::Error allToAll(const at::Tensor& parts, const at::Tensor& received) override;
  std::string transport() const override { return "copies between GPUs"; }
  ir::Error leaveArena() override;
  ir::Error meetInArena() override;

 private:
  PeerRanks(const TrainingRanks& ranks, const DeviceArena& arena, DeviceArena page,
            RankSignals signals)
      : GpuRanks(ranks), arena_(arena), page_(std::move(page)), signals_(std::move(signals)) {}
  void endWaits() override { signals_.release(collective_); }
  std::vector<uint32_t> told() override { return signals_.read(); }

  /// `bytes` of every rank, from `from` in its arena, to places one after the other. The own part
  /// goes last, on the same stream.
  ir::Error collect(const uint8_t* from, uint8_t* to, size_t bytes);
  /// Is it all in the arena?
  ir::Error check(const at::Tensor& tensor) const;

  const DeviceArena& arena_;
  DeviceArena page_;  // of the signals to this rank
  RankSignals signals_;
  std::optional<PeerMemory> arenas_;  // none while the arena's memory is away
  uint32_t collective_ = 0;           // counts them, as all ranks do
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_PEER_RANKS_H_
