// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/ranks_bench.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/calibrate/ranks_link.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/cuda_streams.h"
#include "runtime/cuda/cuda_workspaces.h"
#include "runtime/cuda/gpu_ranks.h"
#include "runtime/cuda/stopwatch.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

namespace {

constexpr int64_t kBytes = int64_t{64} << 20;  // of each rank
constexpr int64_t kSmallBytes = 512;
constexpr int kTries = 5;
constexpr int64_t kWidth = 8192;  // of the matrices
constexpr int kProducts = 16;
constexpr int64_t kGathers = 16;  // beside them; as many on all ranks, whatever each has measured

class RanksBench {
 public:
  RanksBench(const TrainingRanks& ranks, GpuRanks& gpus, const DeviceArena& arena,
             const OpStreams& streams)
      : ranks_(ranks),
        gpus_(gpus),
        compute_(streams.compute()),
        link_(streams.link()),
        own_(at::from_blob(arena.base(), {kBytes}, bytes())),
        all_(at::from_blob(arena.base() + kBytes, {kBytes * gpus.count()}, bytes())),
        matrix_(at::zeros({kWidth, kWidth}, bytes().dtype(at::kBFloat16))),
        product_(at::empty_like(matrix_)) {}

  ir::Error measure(ir::LinkModel& links) {
    ir::Expected<Nanoseconds> small = bestGather(kSmallBytes);
    if (!small) return small.takeError();
    ir::Expected<Nanoseconds> large = bestGather(kBytes);
    if (!large) return large.takeError();
    links.betweenRanks = linkBetweenRanks(kBytes * (gpus_.count() - 1), *small, *large);
    ir::Expected<Times> alone = best(0);
    if (!alone) return alone.takeError();
    ir::Expected<Times> beside = best(kGathers);
    if (!beside) return beside.takeError();
    const auto lost = static_cast<double>((beside->compute - alone->compute).value());
    const int64_t link = std::min(beside->link.value(), beside->compute.value());
    const auto together = static_cast<double>(std::max<int64_t>(1, link));
    links.besideRanksPermille = std::clamp(static_cast<int>(1000 * (1 - lost / together)), 1, 1000);
    return ir::success();
  }

 private:
  struct Times {
    Nanoseconds compute;
    Nanoseconds link;
  };

  static at::TensorOptions bytes() {
    return at::TensorOptions().dtype(at::kByte).device(at::kCUDA);
  }

  ir::Error meet() { return ranks_.between.agree("measuring what lies between ranks", 0); }

  ir::Error gather(int64_t bytes) {
    const c10::cuda::CUDAStreamGuard guard(link_);
    return gpus_.allGather(own_.narrow(0, 0, bytes), all_.narrow(0, 0, bytes * gpus_.count()));
  }

  ir::Error finish(c10::cuda::CUDAStream stream) {
    return gpus_.wait([&] { return cudaStreamQuery(stream.stream()); }, "a measured collective");
  }

  ir::Expected<Nanoseconds> bestGather(int64_t bytes) {
    Nanoseconds best(INT64_MAX);
    for (int i = 0; i <= kTries; ++i) {
      if (ir::Error error = meet()) return error;
      Stopwatch watch;
      watch.start(link_.stream());
      if (ir::Error error = gather(bytes)) return error;
      watch.stop(link_.stream());
      if (ir::Error error = finish(link_)) return error;
      ir::Expected<Nanoseconds> time = watch.read();
      if (!time) return time.takeError();
      if (i > 0) best = std::min(best, *time);  // the first sets up connections
    }
    return best;
  }

  /// Of products beside so many gathers.
  ir::Expected<Times> best(int64_t gathers) {
    Times best{Nanoseconds(INT64_MAX), {}};
    for (int i = 0; i <= kTries; ++i) {
      if (ir::Error error = meet()) return error;
      Stopwatch compute;
      Stopwatch link;
      link.start(link_.stream());
      for (int64_t k = 0; k < gathers; ++k) {
        if (ir::Error error = gather(kBytes)) return error;
      }
      link.stop(link_.stream());
      {
        const c10::cuda::CUDAStreamGuard guard(compute_);
        compute.start(compute_.stream());
        for (int k = 0; k < kProducts; ++k) at::mm_out(product_, matrix_, matrix_);
        compute.stop(compute_.stream());
      }
      for (const c10::cuda::CUDAStream& stream : {link_, compute_}) {
        if (ir::Error error = finish(stream)) return error;
      }
      ir::Expected<Nanoseconds> computeTime = compute.read();
      if (!computeTime) return computeTime.takeError();
      ir::Expected<Nanoseconds> linkTime = link.read();
      if (!linkTime) return linkTime.takeError();
      if (i > 0 && *computeTime < best.compute) best = {*computeTime, *linkTime};
    }
    return best;
  }

  const TrainingRanks& ranks_;
  GpuRanks& gpus_;
  c10::cuda::CUDAStream compute_;
  c10::cuda::CUDAStream link_;
  at::Tensor own_;
  at::Tensor all_;
  at::Tensor matrix_;
  at::Tensor product_;
};

}  // namespace

ir::Error measureCudaRanks(const TrainingRanks& ranks, ir::LinkModel& links) {
  ir::Expected<DeviceArena> arena =
      DeviceArena::allocate(Bytes(kBytes * (ranks.count() + 1)), MemoryUsers::kRanks);
  if (!arena) return arena.takeError();
  ir::Expected<std::unique_ptr<GpuRanks>> gpus = GpuRanks::join(ranks, *arena);
  if (!gpus) return gpus.takeError();
  ir::Expected<OpStreams> streams = OpStreams::take();
  if (!streams) return streams.takeError();
  std::optional<ir::PlanError> failure;
  ir::Error called = callTorch("measuring what lies between ranks", [&] {
    RanksBench bench(ranks, **gpus, *arena, *streams);
    (void)cudaDeviceSynchronize();  // operands are filled on another stream
    if (ir::Error error = bench.measure(links)) failure = ir::takePayload(std::move(error));
  });
  dropWorkspaces(streams->compute());
  c10::cuda::CUDACachingAllocator::emptyCache();
  if (!called && failure) return ir::makeError(*failure);
  return called;
}

}  // namespace stowage::runtime
