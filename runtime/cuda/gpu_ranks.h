// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are GPUs. Where each can reach the memory of all others (one host), collectives are
// copies between arenas; elsewhere they are NCCL's. Sums are neither's, so that their order does
// not depend on sizes or algorithms (runtime/collectives). No GPU notices a process that is gone;
// whoever waits for the GPU asks the connections beside it.
#ifndef STOWAGE_RUNTIME_CUDA_GPU_RANKS_H_
#define STOWAGE_RUNTIME_CUDA_GPU_RANKS_H_

#include <cuda_runtime_api.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "runtime/collectives/tensor_ranks.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/ranks/training_ranks.h"

namespace stowage::runtime {

class GpuRanks : public TensorRanks {
 public:
  /// Each rank with the current GPU of its process. `arena`: where all tensors of collectives lie,
  /// at the same offsets on all ranks; for ranks, as large on all of them, and outlives this.
  /// NCCL_P2P_DISABLE=1, NCCL's own variable, says that no GPU is to read another one's memory.
  /// Collective. Errors: kEnvironment, kCuda, kUnsupported, kOutOfDeviceMemory.
  static ir::Expected<std::unique_ptr<GpuRanks>> join(const TrainingRanks& ranks,
                                                      const DeviceArena& arena);

  int64_t count() const override { return ranks_.count(); }

  /// "copies between GPUs" or "NCCL".
  virtual std::string transport() const = 0;
  /// `own` is how something went here. Success if it went well on all ranks. Collective. Errors:
  /// `own`; kEnvironment where another rank has one.
  ir::Error vote(ir::Error own) const;
  /// Before the arena's memory goes, and when it has come back. Collective. Errors: kEnvironment.
  virtual ir::Error leaveArena() { return ir::success(); }
  virtual ir::Error meetInArena() { return ir::success(); }

  /// Until `query` no longer says cudaErrorNotReady. When another rank is over, or all have told
  /// nothing for kPatienceSeconds, what waits for it is ended, and all later waits end with the
  /// reason: kEnvironment.
  ir::Error wait(llvm::function_ref<cudaError_t()> query, const char* what);

 protected:
  explicit GpuRanks(const TrainingRanks& ranks) : ranks_(ranks) {}
  const TrainingRanks& ranks() const { return ranks_; }
  bool hasEnded() const { return ended_.has_value(); }
  /// Why; success if nothing has ended.
  ir::Error ended() const { return ended_ ? ir::makeError(*ended_) : ir::success(); }
  /// What waits for other ranks on this GPU waits no longer. Called until the GPU is done.
  virtual void endWaits() = 0;
  /// What the other ranks have told so far; empty: they tell nothing.
  virtual std::vector<uint32_t> told() { return {}; }

 private:
  TrainingRanks ranks_;
  std::optional<ir::PlanError> ended_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_GPU_RANKS_H_
