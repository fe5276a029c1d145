// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/peer_ranks.h"

#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

namespace {

constexpr const char* kWhat = "a collective of the ranks";

cudaStream_t currentStream() { return c10::cuda::getCurrentCUDAStream().stream(); }

/// Some hosts let a GPU read another one's memory and get other bytes. `page` is zeroed, and so
/// afterwards. Collective.
ir::Expected<bool> doReadTheSame(const TrainingRanks& ranks, const DeviceArena& page,
                                 const PeerMemory& pages) {
  const auto bytes = static_cast<size_t>(page.bytes().value());
  const auto patternOf = [&](int32_t rank) {
    std::vector<uint8_t> pattern(bytes);
    uint32_t state = 1 + static_cast<uint32_t>(rank);
    for (uint8_t& byte : pattern) {
      state = state * 1664525U + 1013904223U;
      byte = static_cast<uint8_t>(state >> 24U);
    }
    return pattern;
  };
  const std::vector<uint8_t> own = patternOf(ranks.rank());
  bool isSame = cudaMemcpy(page.base(), own.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess &&
                cudaDeviceSynchronize() == cudaSuccess;
  ir::Expected<bool> areWritten = ranks.between.isOnAll(isSame);
  if (!areWritten || !*areWritten) return areWritten;
  // As collectives will: from GPU to GPU.
  std::vector<uint8_t> found(bytes);
  void* here = nullptr;
  isSame = cudaMalloc(&here, bytes) == cudaSuccess;
  for (int32_t rank = 0; isSame && rank < ranks.count(); ++rank) {
    isSame = cudaMemcpy(here, pages.of(rank), bytes, cudaMemcpyDeviceToDevice) == cudaSuccess &&
             cudaMemcpy(found.data(), here, bytes, cudaMemcpyDeviceToHost) == cudaSuccess &&
             found == patternOf(rank);
  }
  (void)cudaFree(here);
  (void)cudaGetLastError();
  ir::Expected<bool> areSame = ranks.between.isOnAll(isSame);
  if (!areSame || !*areSame) return areSame;
  const bool isZeroed =
      cudaMemset(page.base(), 0, bytes) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
  return ranks.between.isOnAll(isZeroed);
}

}  // namespace

ir::Expected<std::unique_ptr<PeerRanks>> PeerRanks::join(const TrainingRanks& ranks,
                                                         const DeviceArena& arena) {
  ir::Expected<DeviceArena> page = RankSignals::makePage(ranks.count());
  if (!page) return page.takeError();
  ir::Expected<std::optional<PeerMemory>> pages = PeerMemory::join(ranks.between, *page);
  if (!pages) return pages.takeError();
  if (!*pages) return nullptr;
  ir::Expected<bool> areSame = doReadTheSame(ranks, *page, **pages);
  if (!areSame) return areSame.takeError();
  if (!*areSame) return nullptr;
  ir::Expected<std::optional<PeerMemory>> arenas = PeerMemory::join(ranks.between, arena);
  if (!arenas) return arenas.takeError();
  if (!*arenas) return nullptr;
  ir::Expected<RankSignals> signals =
      RankSignals::make(std::move(**pages), ranks.rank(), ranks.count());
  ir::Expected<bool> canSignal = ranks.between.isOnAll(static_cast<bool>(signals));
  if (!signals) dropError(signals.takeError());
  if (!canSignal) return canSignal.takeError();
  if (!*canSignal) return nullptr;
  std::unique_ptr<PeerRanks> peers(
      new PeerRanks(ranks, arena, std::move(*page), std::move(*signals)));
  peers->arenas_.emplace(std::move(**arenas));
  return peers;
}

ir::Error PeerRanks::leaveArena() {
  arenas_.reset();
  // From here on the memory of all goes when its owner wants it to.
  return ranks().between.agree("leaving the arenas", 0);
}

ir::Error PeerRanks::meetInArena() {
  ir::Expected<std::optional<PeerMemory>> arenas = PeerMemory::join(ranks().between, arena_);
  if (!arenas) return arenas.takeError();
  if (*arenas) {
    arenas_.emplace(std::move(**arenas));
    return ir::success();
  }
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       "the ranks no longer reach each other's memory after arenas came back");
}

ir::Error PeerRanks::check(const at::Tensor& tensor) const {
  const auto* begin = static_cast<const uint8_t*>(tensor.const_data_ptr());
  const uint8_t* end = begin + tensor.nbytes();
  const bool isInArena = tensor.nbytes() == 0 ||
                         (begin >= arena_.base() && end <= arena_.base() + arena_.bytes().value());
  if (isInArena && arenas_) return ir::success();
  return ir::makeError(ir::ErrorCode::kInternal,
                       "a collective of the ranks has a tensor outside of the arena");
}

ir::Error PeerRanks::allGather(const at::Tensor& own, const at::Tensor& all) {
  if (hasEnded()) return ended();
  if (ir::Error error = check(own)) return error;
  return collect(static_cast<const uint8_t*>(own.const_data_ptr()),
                 static_cast<uint8_t*>(all.mutable_data_ptr()), own.nbytes());
}

ir::Error PeerRanks::allToAll(const at::Tensor& parts, const at::Tensor& received) {
  if (hasEnded()) return ended();
  if (ir::Error error = check(parts)) return error;
  const size_t each = parts.nbytes() / static_cast<size_t>(count());
  const size_t offset = static_cast<size_t>(ranks().rank()) * each;
  return collect(static_cast<const uint8_t*>(parts.const_data_ptr()) + offset,
                 static_cast<uint8_t*>(received.mutable_data_ptr()), each);
}

ir::Error PeerRanks::collect(const uint8_t* from, uint8_t* to, size_t bytes) {
  if (bytes == 0) return ir::success();
  ++collective_;
  cudaStream_t link = currentStream();
  const int32_t own = ranks().rank();
  const int32_t ranksCount = ranks().count();
  const ptrdiff_t offset = from - arena_.base();
  if (ir::Error error = signals_.meet(Signal::kReady, collective_, link)) return error;
  // Each begins with another one, so that not all read from one, and ends with itself.
  for (int32_t i = 1; i <= ranksCount; ++i) {
    const int32_t rank = (own + i) % ranksCount;
    const uint8_t* part = rank == own ? from : arenas_->of(rank) + offset;
    const cudaError_t status = cudaMemcpyAsync(to + static_cast<size_t>(rank) * bytes, part, bytes,
                                               cudaMemcpyDeviceToDevice, link);
    if (ir::Error error = checkCuda(status, kWhat)) return error;
  }
  // What others read here may be overwritten from here on.
  return signals_.meet(Signal::kDone, collective_, link);
}

}  // namespace stowage::runtime
