// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/host_update_bench.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/host_ops.h"
#include "runtime/cuda/stopwatch.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kCopyBytes = int64_t{128} << 20;
constexpr int64_t kTensorBytes = int64_t{64} << 20;      // beyond any cache, four of them
constexpr int kTensors = 4;                              // parameter, gradient, two averages
constexpr int64_t kTouchedPerUpdate = 7 * kTensorBytes;  // all are read, three are written
constexpr int kCopies = 64;                              // each way, in one measurement

ir::Error check(cudaError_t status) {
  return checkCuda(status, "measuring copies beside updates on the host");
}

/// Updates over and over, on a thread of their own, until `stop`.
class BusyHost {
 public:
  explicit BusyHost(uint8_t* memory) : thread_([this, memory] { work(memory); }) {}
  ~BusyHost() {
    if (ir::Error error = stop()) dropError(std::move(error));
  }
  BusyHost(const BusyHost&) = delete;
  BusyHost& operator=(const BusyHost&) = delete;

  void waitForFirst() const {
    while (done_.load() == 0 && !isOver_.load()) std::this_thread::yield();
  }
  int64_t done() const { return done_.load(); }
  /// What went wrong, once.
  ir::Error stop() {
    isOver_.store(true);
    if (thread_.joinable()) thread_.join();
    std::optional<ir::PlanError> lost = std::exchange(lost_, std::nullopt);
    return lost ? ir::makeError(std::move(*lost)) : ir::success();
  }

 private:
  void work(uint8_t* memory) {
    HostOps::prepareThread();
    ir::Error error = callTorch("updating on the host", [&] {
      std::vector<at::Tensor> tensors;
      for (int i = 0; i < kTensors; ++i) {
        tensors.push_back(
            at::from_blob(memory + i * kTensorBytes, {kTensorBytes / 2}, at::dtype(at::kBFloat16)));
      }
      const at::Tensor step = at::ones({});
      while (!isOver_.load()) {
        at::_fused_adamw_(tensors[0], tensors[1], tensors[2], tensors[3], {}, step, 1e-3, 0.9,
                          0.999, 0.01, 1e-8, false, false);
        done_.fetch_add(1);
      }
    });
    if (error) lost_ = ir::takePayload(std::move(error));
    isOver_.store(true);
  }

  std::atomic<bool> isOver_ = false;
  std::atomic<int64_t> done_ = 0;
  std::optional<ir::PlanError> lost_;  // the thread's, until it is joined
  std::thread thread_;
};

class HostUpdateBench {
 public:
  HostUpdateBench(uint8_t* device, uint8_t* host) : device_(device), host_(host) {}
  ~HostUpdateBench() {
    for (cudaStream_t stream : {out_, in_}) {
      if (stream != nullptr) (void)cudaStreamDestroy(stream);
    }
  }
  HostUpdateBench(const HostUpdateBench&) = delete;
  HostUpdateBench& operator=(const HostUpdateBench&) = delete;

  ir::Expected<HostUpdateRates> measure() {
    for (cudaStream_t* stream : {&out_, &in_}) {
      if (ir::Error error = check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking))) {
        return error;
      }
    }
    if (ir::Error error = copy().takeError()) return error;  // the first takes longer
    ir::Expected<Nanoseconds> without = copy();
    if (!without) return without.takeError();
    BusyHost host(host_ + 2 * kCopyBytes);
    host.waitForFirst();
    const int64_t before = host.done();
    const auto begin = Clock::now();
    ir::Expected<Nanoseconds> beside = copy();
    const std::chrono::nanoseconds took = Clock::now() - begin;
    const int64_t updates = host.done() - before;
    if (!beside) return beside.takeError();
    if (ir::Error error = host.stop()) return error;
    return HostUpdateRates{
        .updates = BytesPerSecond(
            static_cast<int64_t>(static_cast<double>(updates * kTouchedPerUpdate) * 1e9 /
                                 static_cast<double>(std::max<int64_t>(took.count(), 1)))),
        .prefetchPermille = static_cast<int>(std::clamp<int64_t>(
            1000 * without->value() / std::max<int64_t>(beside->value(), 1), 1, 1000))};
  }

 private:
  /// Copies both ways; what those to the device take.
  ir::Expected<Nanoseconds> copy() {
    constexpr auto kSize = static_cast<size_t>(kCopyBytes);
    Stopwatch in;
    in.start(in_);
    for (int i = 0; i < kCopies; ++i) {
      if (ir::Error error = check(cudaMemcpyAsync(device_ + kCopyBytes, host_ + kCopyBytes, kSize,
                                                  cudaMemcpyHostToDevice, in_))) {
        return error;
      }
      if (ir::Error error =
              check(cudaMemcpyAsync(host_, device_, kSize, cudaMemcpyDeviceToHost, out_))) {
        return error;
      }
    }
    in.stop(in_);
    ir::Expected<Nanoseconds> time = in.read();
    if (ir::Error error = check(cudaStreamSynchronize(out_))) {
      dropError(time.takeError());
      return error;
    }
    return time;
  }

  uint8_t* device_;
  uint8_t* host_;
  cudaStream_t out_ = nullptr;
  cudaStream_t in_ = nullptr;
};

}  // namespace

ir::Expected<HostUpdateRates> measureHostUpdates() {
  ir::Expected<DeviceArena> device = DeviceArena::allocate(Bytes(2 * kCopyBytes));
  if (!device) return device.takeError();
  ir::Expected<PinnedArena> host =
      PinnedArena::allocate(Bytes(2 * kCopyBytes + kTensors * kTensorBytes), {});
  if (!host) return host.takeError();
  return HostUpdateBench(device->base(), host->base()).measure();
}

}  // namespace stowage::runtime
