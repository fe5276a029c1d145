// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/rank_signals.h"

#include <algorithm>
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

/// Of one call; the driver takes 256.
constexpr size_t kMostOps = 256;

ir::Error check(CUresult status) {
  if (status == CUDA_SUCCESS) return ir::success();
  return ir::makeError(ir::ErrorCode::kCuda, "signals between ranks: the driver says " +
                                                 std::to_string(status) + " (CUresult)");
}

CUstreamBatchMemOpParams writeOf(CUdeviceptr to, uint32_t number) {
  CUstreamBatchMemOpParams op{};
  op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  op.writeValue.address = to;
  op.writeValue.value = number;
  op.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return op;
}

CUstreamBatchMemOpParams waitOf(CUdeviceptr at, uint32_t number) {
  CUstreamBatchMemOpParams op{};
  op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  op.waitValue.address = at;
  op.waitValue.value = number;
  op.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  return op;
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
  ir::Expected<void*> batch =
      findDriverFunction("cuStreamBatchMemOp", "with which GPUs signal each other");
  if (!batch) return batch.takeError();
  signals.batch_ = reinterpret_cast<decltype(&cuStreamBatchMemOp)>(*batch);
  // A priority that no other stream has, so that it shares no queue with one that waits.
  int least = 0;
  int greatest = 0;
  cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  if (status == cudaSuccess) {
    status = cudaStreamCreateWithPriority(&signals.aside_, cudaStreamNonBlocking,
                                          std::max(greatest, least - 1));
  }
  if (ir::Error error = checkCuda(status, "making a stream")) return error;
  return signals;
}

RankSignals::RankSignals(RankSignals&& other) noexcept
    : pages_(std::move(other.pages_)),
      rank_(other.rank_),
      count_(other.count_),
      batch_(other.batch_),
      aside_(std::exchange(other.aside_, nullptr)) {}

RankSignals::~RankSignals() {
  if (aside_ != nullptr) (void)cudaStreamDestroy(aside_);
}

CUdeviceptr RankSignals::slot(Signal signal, int32_t of, int32_t from) const {
  const int64_t index = static_cast<int64_t>(signal) * count_ + from;
  return reinterpret_cast<CUdeviceptr>(pages_.of(of) + index * kSlotBytes);
}

ir::Error RankSignals::meet(Signal signal, uint32_t collective, cudaStream_t stream) const {
  // All that the stream has done before is there for others first.
  std::vector<CUstreamBatchMemOpParams> ops;
  for (int32_t rank = 0; rank < count_; ++rank) {
    if (rank != rank_) ops.push_back(writeOf(slot(signal, rank, rank_), collective));
  }
  for (int32_t rank = 0; rank < count_; ++rank) {
    if (rank != rank_) ops.push_back(waitOf(slot(signal, rank_, rank), collective));
  }
  return enqueue(std::move(ops), stream);
}

std::vector<uint32_t> RankSignals::read() const {
  std::vector<uint32_t> numbers(static_cast<size_t>(kSignals * count_));
  const cudaError_t status =
      cudaMemcpy2DAsync(numbers.data(), sizeof(uint32_t), pages_.of(rank_), kSlotBytes,
                        sizeof(uint32_t), numbers.size(), cudaMemcpyDeviceToHost, aside_);
  if (status != cudaSuccess || cudaStreamSynchronize(aside_) != cudaSuccess) return {};
  return numbers;
}

void RankSignals::release(uint32_t collective) const {
  std::vector<CUstreamBatchMemOpParams> ops;
  for (const Signal signal : {Signal::kReady, Signal::kDone}) {
    for (int32_t rank = 0; rank < count_; ++rank) {
      ops.push_back(writeOf(slot(signal, rank_, rank), collective + kFarAhead));
    }
  }
  dropError(enqueue(std::move(ops), aside_));
}

ir::Error RankSignals::enqueue(std::vector<CUstreamBatchMemOpParams> ops,
                               cudaStream_t stream) const {
  for (size_t begin = 0; begin < ops.size(); begin += kMostOps) {
    const size_t count = std::min(kMostOps, ops.size() - begin);
    const CUresult status =
        batch_(stream, static_cast<unsigned>(count), ops.data() + begin, /*flags=*/0);
    if (ir::Error error = check(status)) return error;
  }
  return ir::success();
}

}  // namespace stowage::runtime
