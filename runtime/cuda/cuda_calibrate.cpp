// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_calibrate.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/calibrate/op_measurement.h"
#include "runtime/calibrate/valid_values.h"
#include "runtime/cuda/background_copies.h"
#include "runtime/cuda/cuda_rng.h"
#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/cuda_streams.h"
#include "runtime/cuda/cuda_workspaces.h"
#include "runtime/cuda/served_cuda_allocator.h"
#include "runtime/cuda/stopwatch.h"
#include "runtime/cuda/used_memory.h"
#include "runtime/torch/deterministic_mode.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

namespace {

using Clock = std::chrono::steady_clock;

/// Operands are filled from a block of valid numbers, over and over: making a billion of them on
/// the host would take longer than all the rest.
constexpr int64_t kFillBytes = int64_t{4} << 20;
/// Code of kernels that a training loads and the ops of its step do not: first values, what feeds
/// and compares them. On an H200 a run took 4 MiB more than its ops had, and more while loading.
constexpr Bytes kLoadedByRuns(int64_t{64} << 20);

/// Holds a stream back while a call is launched behind it, so that what is measured is the device's
/// work and not the launching. A call that itself waits for the stream is let through after a
/// while.
class Gate {
 public:
  Gate() = default;
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  ir::Error close(cudaStream_t stream) {
    auto held = std::make_unique<std::shared_ptr<std::atomic<bool>>>(open_);
    ir::Error error = checkCuda(cudaLaunchHostFunc(stream, wait, held.get()), "holding a stream");
    if (!error) (void)held.release();
    return error;
  }
  void open() { open_->store(true, std::memory_order_release); }

 private:
  static void wait(void* data) {
    const std::unique_ptr<std::shared_ptr<std::atomic<bool>>> held(
        static_cast<std::shared_ptr<std::atomic<bool>>*>(data));
    const auto latest = Clock::now() + std::chrono::milliseconds(20);
    while (!(*held)->load(std::memory_order_acquire) && Clock::now() < latest) {
    }
  }

  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

class CudaBench final : public OpBench {
 public:
  CudaBench(c10::cuda::CUDAStream stream, int64_t alignBytes)
      : stream_(stream), alignBytes_(alignBytes) {}

  void clear() override {
    (void)cudaStreamSynchronize(stream_.stream());
    operands_.clear();
    host_.clear();
    warmUp();
  }

  ir::Expected<uint8_t*> place(ir::Space home, Bytes bytes) override {
    if (home == ir::Space::kHost) {
      host_.emplace_back(static_cast<size_t>(bytes.value() + alignBytes_));
      return host_.back().data();
    }
    auto operand = callTorch("an operand of " + formatBytes(bytes), [&] {
      auto* allocator = c10::cuda::CUDACachingAllocator::get();
      const auto size = static_cast<size_t>(std::max<int64_t>(bytes.value(), 1));
      return Operand{.bytes = allocator->allocate(size),
                     .numbers = allocator->allocate(std::min<size_t>(size, kFillBytes))};
    });
    if (!operand) return operand.takeError();
    operands_.push_back(std::move(*operand));
    return static_cast<uint8_t*>(operands_.back().bytes.get());
  }

  ir::Error fill(ir::Space home, uint8_t* at, Bytes bytes, const OperandFill& fill) override {
    if (home == ir::Space::kHost) {
      fillValidValues(fill.dtype, fill.integers, fill.seed,
                      {at, static_cast<size_t>(bytes.value())});
      return ir::success();
    }
    const auto found = std::find_if(operands_.begin(), operands_.end(),
                                    [&](const Operand& o) { return o.bytes.get() == at; });
    if (found == operands_.end() || bytes.value() == 0) return ir::success();
    const int64_t first = std::min(bytes.value(), kFillBytes);
    if (!std::exchange(found->isMade, true)) {
      if (ir::Error error = makeNumbers(*found, first, fill)) return error;
    }
    if (ir::Error error = copy(at, found->numbers.get(), first)) return error;
    // The block doubles until it covers the operand.
    for (int64_t done = first; done < bytes.value();) {
      const int64_t more = std::min(done, bytes.value() - done);
      if (ir::Error error = copy(at + done, at, more)) return error;
      done += more;
    }
    return ir::success();
  }

  ir::Expected<CallTime> time(const std::string& name, llvm::function_ref<void()> call) override {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    const ServedThread served(allocations_);
    Gate gate;
    if (ir::Error error = gate.close(stream_.stream())) return error;
    watch_.start(stream_.stream());
    auto launched = callTorch(name, [&] {
      const auto begin = Clock::now();
      call();
      return since(begin);
    });
    watch_.stop(stream_.stream());
    gate.open();
    if (!launched) return launched.takeError();
    ir::Expected<Nanoseconds> ran = watch_.read();
    if (!ran) return ran.takeError();
    return CallTime{.work = *ran, .launch = *launched};
  }

  ir::Error disturb() override {
    constexpr int64_t kBytes = int64_t{16} << 20;  // 0.3 ms on a fast link
    constexpr int kCopies = 8;
    if (!copies_) {
      auto copies = BackgroundCopies::make(Bytes(kBytes));
      if (!copies) return copies.takeError();
      copies_.emplace(std::move(*copies));
    }
    for (int i = 0; i < kCopies; ++i) {
      if (ir::Error error = copies_->start()) return error;
    }
    return ir::success();
  }

  bool isLostAfterAnError() const override { return true; }
  AllocationSource& allocations() override { return allocations_; }

 private:
  struct Operand {
    c10::DataPtr bytes;
    c10::DataPtr numbers;  // what the bytes are filled from
    bool isMade = false;
  };

  // A GPU that was idle runs at a fraction of its clock; in a step it is never idle for long.
  void warmUp() {
    constexpr int64_t kSide = 4096;
    constexpr int kProducts = 100;  // of 0.2 ms on a recent GPU
    const c10::cuda::CUDAStreamGuard guard(stream_);
    dropError(callTorch("warming up", [&] {
      if (!factor_.defined()) {
        factor_ = at::ones({kSide, kSide}, at::device(at::kCUDA).dtype(at::kHalf));
        product_ = at::empty_like(factor_);
      }
      for (int i = 0; i < kProducts; ++i) at::mm_out(product_, factor_, factor_);
    }));
  }

  ir::Error makeNumbers(const Operand& operand, int64_t bytes, const OperandFill& fill) {
    numbers_.resize(static_cast<size_t>(bytes));
    fillValidValues(fill.dtype, fill.integers, fill.seed, numbers_);
    return checkCuda(cudaMemcpyAsync(operand.numbers.get(), numbers_.data(), numbers_.size(),
                                     cudaMemcpyHostToDevice, stream_.stream()),
                     "filling an operand");
  }

  ir::Error copy(void* to, const void* from, int64_t bytes) {
    return checkCuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                                     stream_.stream()),
                     "filling an operand");
  }

  c10::cuda::CUDAStream stream_;
  int64_t alignBytes_;
  std::vector<Operand> operands_;
  at::Tensor factor_;
  at::Tensor product_;
  std::vector<std::vector<uint8_t>> host_;
  std::vector<uint8_t> numbers_;
  std::optional<BackgroundCopies> copies_;
  Stopwatch watch_;
  AllocationSource allocations_;
};

/// Puts the GPU's generator back to where it was.
class CudaRngRestore {
 public:
  CudaRngRestore() : keeper_(makeCudaRngKeeper()) {
    run_.rngSlot = 0;
    keeper_->before(run_);
  }
  ~CudaRngRestore() {
    ir::Command again = run_;
    again.recompute = 1;
    keeper_->before(again);
  }
  CudaRngRestore(const CudaRngRestore&) = delete;
  CudaRngRestore& operator=(const CudaRngRestore&) = delete;

 private:
  std::unique_ptr<RngKeeper> keeper_;
  ir::Command run_;
};

}  // namespace

ir::Expected<ir::CostTable> calibrateCuda(const ir::Graph& graph, const CalibrateOptions& options) {
  const DeterministicMode mode(options.deterministic);
  if (ir::Error error = callTorch("preparing the GPU", [] {
        at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
        installServedCudaAllocator();
      })) {
    return error;
  }
  ir::Expected<OpStreams> streams = OpStreams::take();
  if (!streams) return streams.takeError();
  const c10::cuda::CUDAStream stream = streams->compute();
  const CudaRngRestore restore;
  ir::CostTable table = options.known;
  table.source = ir::CostSource::kMeasured;
  const c10::Device device(c10::DeviceType::CUDA, c10::cuda::current_device());
  {
    // Gone before what a process takes is read: its own tensors are no part of that.
    CudaBench bench(stream, options.alignBytes);
    if (ir::Error error = measureOps(graph, options, device, bench, table)) return error;
  }
  dropWorkspaces(stream);
  c10::cuda::CUDACachingAllocator::emptyCache();
  // Where most ops were known, their kernels were not loaded now.
  if (const std::optional<Bytes> now = memoryOutside(Bytes(0))) {
    table.outside = std::max(table.outside.value_or(Bytes(0)), *now + kLoadedByRuns);
  }
  return table;
}

}  // namespace stowage::runtime
