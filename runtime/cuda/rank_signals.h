// SPDX-License-Identifier: Apache-2.0
//
// What the streams of ranks of one host tell each other: numbers of collectives, which a GPU writes
// into another one's memory, and which a stream waits for. No kernel takes part, so neither waits
// for processors that compute has.
#ifndef STOWAGE_RUNTIME_CUDA_RANK_SIGNALS_H_
#define STOWAGE_RUNTIME_CUDA_RANK_SIGNALS_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/base/error.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/peer_memory.h"

namespace stowage::runtime {

enum class Signal {
  kReady,  // what others read of this rank for the collective is there
  kDone    // this rank has read what it wants of the others
};

class RankSignals {
 public:
  /// `pages`: memory for signals, of all ranks, zeroed. Errors: kUnsupported, kCuda.
  static ir::Expected<RankSignals> make(PeerMemory pages, int32_t rank, int32_t count);
  /// Memory for those of so many ranks, zeroed. Errors: as DeviceArena::allocate; kCuda.
  static ir::Expected<DeviceArena> makePage(int32_t count);
  RankSignals(RankSignals&& other) noexcept;
  RankSignals& operator=(RankSignals&&) = delete;
  ~RankSignals();

  /// When the stream comes to it, it tells all other ranks, and goes on when all have told it.
  /// Errors: kCuda.
  ir::Error meet(Signal signal, uint32_t collective, cudaStream_t stream) const;
  /// What others have told, by signal and rank; empty where it cannot be read.
  std::vector<uint32_t> read() const;
  /// No stream of this rank waits for collectives up to this one any more.
  void release(uint32_t collective) const;

 private:
  RankSignals(PeerMemory pages, int32_t rank, int32_t count)
      : pages_(std::move(pages)), rank_(rank), count_(count) {}
  ir::Error enqueue(std::vector<CUstreamBatchMemOpParams> ops, cudaStream_t stream) const;
  /// Where `of` is told by `from`.
  CUdeviceptr slot(Signal signal, int32_t of, int32_t from) const;

  PeerMemory pages_;
  int32_t rank_;
  int32_t count_;
  decltype(&cuStreamBatchMemOp) batch_ = nullptr;
  cudaStream_t aside_ = nullptr;  // none of a step's
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_RANK_SIGNALS_H_
