// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/pinned_arena.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/injected_faults.h"
#include "runtime/cuda/numa_node.h"

namespace stowage::runtime {

namespace {

constexpr int64_t kTouchedAtOnce = int64_t{64} << 20;
constexpr int64_t kPageBytes = 4096;
constexpr unsigned kMostTouchingThreads = 8;

/// Writes to every page, so that the kernel makes it; in parallel, because it clears each.
/// `node`: whose processors do it; a thread that may use none of them stays where it is.
void makePages(uint8_t* base, Bytes bytes, std::optional<int> node,
               const PinnedArena::Report& report) {
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};
  const auto touch = [&] {
    if (node) runOnNumaNode(*node);
    for (;;) {
      const int64_t begin = next.fetch_add(kTouchedAtOnce);
      if (begin >= bytes.value()) return;
      const int64_t end = std::min(begin + kTouchedAtOnce, bytes.value());
      for (int64_t at = begin; at < end; at += kPageBytes) {
        *const_cast<volatile uint8_t*>(base + at) = 0;
      }
      done.fetch_add(end - begin);
    }
  };
  std::vector<std::thread> threads;
  const unsigned count = std::clamp(std::thread::hardware_concurrency(), 1U, kMostTouchingThreads);
  for (unsigned i = 0; i < count; ++i) threads.emplace_back(touch);
  while (report && done.load() < bytes.value()) {
    report(Bytes(done.load()), bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (std::thread& thread : threads) thread.join();
}

/// What limits it, and what helps.
ir::Error explainPinning(ir::Error error) {
  ir::PlanError refused = ir::takePayload(std::move(error));
  rlimit limit{};
  const bool isLimited = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  refused.note(isLimited ? "memory that a process may lock is limited to " +
                               sizeText(Bytes(static_cast<int64_t>(limit.rlim_cur))) +
                               " here ('ulimit -l')"
                         : "a process may lock any amount here ('ulimit -l' is unlimited); a "
                           "container's memory limit counts pinned memory, too");
  refused.note("'stowage plan --host' makes a plan with a smaller host arena");
  return ir::makeError(std::move(refused));
}

/// The node of the GPU that this process uses.
std::optional<int> gpuNode() {
  int gpu = 0;
  std::array<char, 32> busId{};
  if (cudaGetDevice(&gpu) == cudaSuccess &&
      cudaDeviceGetPCIBusId(busId.data(), static_cast<int>(busId.size()), gpu) == cudaSuccess) {
    return findNumaNode(busId.data());
  }
  (void)cudaGetLastError();
  return std::nullopt;
}

}  // namespace

ir::Expected<PinnedArena> PinnedArena::allocate(Bytes bytes, const Report& report, Bytes most) {
  most = std::max(bytes, most);
  if (most.value() == 0) return PinnedArena(nullptr, most);
  const auto reserve = [&] {
    return mmap(nullptr, static_cast<size_t>(most.value()), PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  };
  void* base = reserve();
  if (base == MAP_FAILED && most > bytes) {
    most = bytes;
    base = most.value() == 0 ? nullptr : reserve();
  }
  if (base == MAP_FAILED) {
    return ir::makeError(
        ir::ErrorCode::kOutOfDeviceMemory,
        "could not map the host arena of " + sizeText(bytes) + ": " + std::strerror(errno));
  }
  PinnedArena arena(static_cast<uint8_t*>(base), most);
  // A loader's workers are forked: without this, the kernel would write down each page for each.
  (void)madvise(base, static_cast<size_t>(most.value()), MADV_DONTFORK);
  const std::optional<int> node = gpuNode();
  if (node && !preferNumaNode(base, most, *node)) arena.node_ = node;
  if (ir::Error error = arena.grow(bytes, report)) return error;
  return arena;
}

ir::Error PinnedArena::grow(Bytes bytes, const Report& report) {
  if (bytes <= bytes_) return ir::success();
  const auto open = static_cast<size_t>(roundUp(bytes_, kPageBytes).value());
  const auto wanted = static_cast<size_t>(bytes.value());
  if (bytes > most_) {
    return ir::makeError(ir::ErrorCode::kOutOfDeviceMemory,
                         "the host arena is to have " + sizeText(bytes) +
                             ", and there are addresses for " + sizeText(most_));
  }
  if (mprotect(base_ + open, wanted > open ? wanted - open : 0, PROT_READ | PROT_WRITE) != 0) {
    return ir::makeError(
        ir::ErrorCode::kOutOfDeviceMemory,
        "could not map the host arena of " + sizeText(bytes) + ": " + std::strerror(errno));
  }
  if (wanted > open) {
    // Fewer pages to make and to pin; an offer only.
    (void)madvise(base_ + open, wanted - open, MADV_HUGEPAGE);
    makePages(base_ + open, Bytes(static_cast<int64_t>(wanted - open)), node_, report);
  }
  // A copy must lie in one pinned range.
  if (std::exchange(pinned_, false)) (void)cudaHostUnregister(base_);
  ir::Error error = pin(bytes);
  if (!error) {
    bytes_ = bytes;
  } else if (bytes_.value() > 0) {
    dropError(pin(bytes_));
  }
  return error;
}

ir::Error PinnedArena::pin(Bytes bytes) {
  const cudaError_t pinned =
      InjectedFaults::failsPinning()
          ? cudaErrorMemoryAllocation
          : cudaHostRegister(base_, static_cast<size_t>(bytes.value()), cudaHostRegisterDefault);
  if (ir::Error error = checkCuda(pinned, "pinning the host arena of " + sizeText(bytes))) {
    return explainPinning(std::move(error));
  }
  pinned_ = true;
  return ir::success();
}

PinnedArena::PinnedArena(PinnedArena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      most_(std::exchange(other.most_, Bytes(0))),
      bytes_(std::exchange(other.bytes_, Bytes(0))),
      pinned_(std::exchange(other.pinned_, false)),
      node_(other.node_) {}

PinnedArena::~PinnedArena() {
  if (base_ == nullptr) return;
  if (pinned_) (void)cudaHostUnregister(base_);
  munmap(base_, static_cast<size_t>(most_.value()));
}

}  // namespace stowage::runtime
