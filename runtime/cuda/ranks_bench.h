// SPDX-License-Identifier: Apache-2.0
//
// What collectives between GPUs take, and what they take from kernels beside them, measured by all
// ranks at once.
#ifndef STOWAGE_RUNTIME_CUDA_RANKS_BENCH_H_
#define STOWAGE_RUNTIME_CUDA_RANKS_BENCH_H_

#include "ir/base/error.h"
#include "ir/schedule/target.h"
#include "runtime/ranks/training_ranks.h"

namespace stowage::runtime {

/// Sets `betweenRanks` and `besideRanksPermille` of `links`: gathers of 64 MiB a rank, the latency
/// is that of 512 bytes, the best of five; matrix products of 8192 in bf16 alone and beside such
/// gathers. Device memory: 64 MiB for each rank, and 0.5 GB. Errors: kOutOfDeviceMemory, kCuda,
/// kEnvironment.
ir::Error measureCudaRanks(const TrainingRanks& ranks, ir::LinkModel& links);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_RANKS_BENCH_H_
