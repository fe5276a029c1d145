// SPDX-License-Identifier: Apache-2.0
//
// GPUs that exchange by NCCL, on the stream that launches ops: of several hosts, or without access
// to each other's memory.
#ifndef STOWAGE_RUNTIME_CUDA_NCCL_RANKS_H_
#define STOWAGE_RUNTIME_CUDA_NCCL_RANKS_H_

#include <memory>
#include <string>

#include "ir/base/error.h"
#include "runtime/cuda/gpu_ranks.h"
#include "runtime/cuda/nccl_functions.h"

namespace stowage::runtime {

class NcclRanks : public GpuRanks {
 public:
  /// Each rank with the current GPU of its process. Errors: kEnvironment.
  static ir::Expected<std::unique_ptr<NcclRanks>> join(const TrainingRanks& ranks);
  ~NcclRanks() override;

  ir::Error allGather(const at::Tensor& own, const at::Tensor& all) override;
  ir::Error allToAll(const at::Tensor& parts, const at::Tensor& received) override;
  std::string transport() const override { return "NCCL"; }

 private:
  NcclRanks(const TrainingRanks& ranks, NcclFunctions nccl, NcclComm comm)
      : GpuRanks(ranks), nccl_(nccl), comm_(comm) {}
  ir::Error check(NcclStatus status, const char* what) const;
  void endWaits() override;

  NcclFunctions nccl_;
  NcclComm comm_;
  bool isAborted_ = false;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_NCCL_RANKS_H_
