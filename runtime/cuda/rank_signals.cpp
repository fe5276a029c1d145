// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/rank_signals.h"

#include <string>
#include <utility>

#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/driver_functions.h"

namespace stowage::runtime {

namespace {

constexpr int64_t kSlotBytes = 128;  // a line of the cache for each
constexpr int64_t kSignals = 2;
/// Numbers are compared as the driver does, modulo 2^32: later by less than half of that.
constexpr uint32_t kFarAhead = 1U << 30;

ir::Error check(CUresult status, const char* what) {
  if (status == CUDA_SUCCESS) return ir::success();
  return ir::makeError(ir::ErrorCode::kCuda, std::string(what) + " between ranks: the driver says " +
                                                 std::to_string(status) + " (CUresult)");
}

}  // namespace

ir::Expected<DeviceArena> RankSignals::makePage(int32_t count) {
  ir::Expected<DeviceArena> page =
      DeviceArena::allocate(Bytes(kSignals * count * kSlotBytes), MemoryUsers::kRanks);
  if (!page) return page.takeError();
  cudaError_t status = cudaMemset(page->base(), 0, static_cast<size_t>(page->bytes().value()));
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  if (ir::Error error = checkCuda(status, "making signals between ranks")) return error;
  return page;
}

ir::Expected<RankSignals> RankSignals::make(PeerMemory pages, int32_t rank, int32_t count) {
  RankSignals signals(std::move(pages), rank, count);
  const char* purpose = "with which GPUs signal each other";
  ir::Expected<void*> write = findDriverFunction("cuStreamWriteValue32", purpose);
  if (!write) return write.takeError();
  ir::Expected<void*> wait = findDriverFunction("cuStreamWaitValue32", purpose);
  if (!wait) return wait.takeError();
  signals.write_ = reinterpret_cast<decltype(&cuStreamWriteValue32)>(*write);
  signals.wait_ = reinterpret_cast<decltype(&cuStreamWaitValue32)>(*wait);
  if (ir::Error error = checkCuda(
          cudaStreamCreateWithFlags(&signals.aside_, cudaStreamNonBlocking), "making a stream")) {
    return error;
  }
  return signals;
}

RankSignals::RankSignals(RankSignals&& other) noexcept
    : pages_(std::move(other.pages_)),
      rank_(other.rank_),
      count_(other.count_),
      write_(other.write_),
      wait_(other.wait_),
      aside_(std::exchange(other.aside_, nullptr)) {}

RankSignals::~RankSignals() {
  if (aside_ != nullptr) (void)cudaStreamDestroy(aside_);
}

CUdeviceptr RankSignals::slot(Signal signal, int32_t of, int32_t from) const {
  const int64_t index = static_cast<int64_t>(signal) * count_ + from;
  return reinterpret_cast<CUdeviceptr>(pages_.of(of) + index * kSlotBytes);
}

ir::Error RankSignals::tell(Signal signal, uint32_t collective, cudaStream_t stream) const {
  for (int32_t rank = 0; rank < count_; ++rank) {
    if (rank == rank_) continue;
    // All that the stream has done before is there for others first.
    const CUresult status =
        write_(stream, slot(signal, rank, rank_), collective, CU_STREAM_WRITE_VALUE_DEFAULT);
    if (ir::Error error = check(status, "a signal")) return error;
  }
  return ir::success();
}

ir::Error RankSignals::await(Signal signal, int32_t from, uint32_t collective,
                             cudaStream_t stream) const {
  return check(wait_(stream, slot(signal, rank_, from), collective, CU_STREAM_WAIT_VALUE_GEQ),
               "a wait");
}

void RankSignals::release(uint32_t collective) const {
  for (const Signal signal : {Signal::kReady, Signal::kDone}) {
    for (int32_t rank = 0; rank < count_; ++rank) {
      (void)write_(aside_, slot(signal, rank_, rank), collective + kFarAhead,
                   CU_STREAM_WRITE_VALUE_DEFAULT);
    }
  }
}

}  // namespace stowage::runtime
