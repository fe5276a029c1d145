// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are GPUs: collectives by NCCL on the stream that launches ops. Sums are not NCCL's, so
// that their order does not depend on sizes or algorithms (runtime/collectives). NCCL does not
// notice a process that is gone; whoever waits for the GPU asks the connections beside it.
#ifndef STOWAGE_RUNTIME_CUDA_NCCL_RANKS_H_
#define STOWAGE_RUNTIME_CUDA_NCCL_RANKS_H_

#include <llvm/ADT/STLFunctionalExtras.h>

#include <memory>
#include <optional>

#include "ir/base/error.h"
#include "runtime/collectives/tensor_ranks.h"
#include "runtime/cuda/nccl_functions.h"
#include "runtime/ranks/training_ranks.h"

namespace stowage::runtime {

class NcclRanks : public TensorRanks {
 public:
  /// Each rank with the current GPU of its process. Errors: kEnvironment.
  static ir::Expected<std::unique_ptr<NcclRanks>> join(const TrainingRanks& ranks);
  ~NcclRanks() override;

  int64_t count() const override { return ranks_.count(); }
  ir::Error allGather(const at::Tensor& own, const at::Tensor& all) override;
  ir::Error allToAll(const at::Tensor& parts, const at::Tensor& received) override;

  /// Until `query` no longer says cudaErrorNotReady. When another rank is over, or nothing happens
  /// for kPatienceSeconds, what waits for it is ended, and all later waits end with the reason:
  /// kEnvironment.
  ir::Error wait(llvm::function_ref<cudaError_t()> query, const char* what);

 private:
  NcclRanks(const TrainingRanks& ranks, NcclFunctions nccl, NcclComm comm);
  ir::Error check(NcclStatus status, const char* what) const;
  void end(ir::Error reason);

  TrainingRanks ranks_;
  NcclFunctions nccl_;
  NcclComm comm_;
  std::optional<ir::PlanError> ended_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_NCCL_RANKS_H_
