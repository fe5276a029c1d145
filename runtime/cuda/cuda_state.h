// SPDX-License-Identifier: Apache-2.0
//
// What a CUDA device shares with its programs: arenas, streams, the allocator that serves launches,
// the first failure.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_STATE_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_STATE_H_

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/interval.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/cuda_streams.h"
#include "runtime/cuda/cuda_workspaces.h"
#include "runtime/cuda/gpu_ranks.h"
#include "runtime/cuda/host_ops.h"
#include "runtime/cuda/served_cuda_allocator.h"
#include "runtime/disk/disk_file.h"
#include "runtime/executor/queued_program.h"
#include "runtime/memory/step_allocator.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

struct CudaState {
  DeviceArena device;
  PinnedArena host;
  StepAllocator allocator;
  AllocationSource allocations;
  OpStreams opStreams;
  c10::cuda::CUDAStream compute;
  c10::cuda::CUDAStream link;  // of collectives, beside compute
  CopyStream out;
  CopyStream in;
  std::unique_ptr<DiskFile> disk;   // null: none
  std::unique_ptr<GpuRanks> ranks;  // null: this process is alone
  /// Threads of the streams that are none of CUDA's: updates on the host, the disk.
  QueuedStreams threads{[](ir::Stream stream) {
    if (stream == ir::Stream::kHostCompute) HostOps::prepareThread();
  }};
  /// What the device arena holds while it is released: the ranges, one after the other. The memory
  /// stays for the next time.
  std::optional<PinnedArena> kept;
  std::vector<ir::ByteRange> keptRanges;
  std::optional<ir::PlanError> failure;
  /// What libtorch's own allocator had given away when steps were under way; nothing before.
  std::optional<int64_t> givenAway;

  CudaState(DeviceArena deviceArena, PinnedArena hostArena, int64_t alignBytes, OpStreams ops,
            CopyStreams streams)
      : device(std::move(deviceArena)),
        host(std::move(hostArena)),
        allocator(device.base(), device.bytes(), alignBytes),
        opStreams(std::move(ops)),
        compute(opStreams.compute()),
        link(opStreams.link()),
        out(std::move(streams.out)),
        in(std::move(streams.in)) {}
  ~CudaState() {
    dropWorkspaces(compute);
    CudaArenaRegistration::remove(allocator);
  }
  CudaState(const CudaState&) = delete;
  CudaState& operator=(const CudaState&) = delete;

  uint8_t* at(ir::Space space, int64_t offset) const {
    return (space == ir::Space::kHost ? host.base() : device.base()) + offset;
  }
  cudaStream_t raw(ir::Stream stream) const {
    switch (stream) {
      case ir::Stream::kDeviceToHost:
        return out.get();
      case ir::Stream::kHostToDevice:
        return in.get();
      case ir::Stream::kCollective:
        return link.stream();
      default:
        return compute.stream();
    }
  }

  /// How often libtorch's own allocator gave device memory away in this process, to any thread.
  static int64_t countGivenAway() {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device());
    return stats.allocation[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
        .allocated;
  }

  /// Keeps the first failure, which is the cause of the others.
  ir::Error fail(ir::Error error) {
    if (error) {
      ir::PlanError found = ir::takePayload(std::move(error));
      if (!failure) failure = std::move(found);
    }
    if (!failure && threads.failure().isSet()) {
      failure = ir::takePayload(threads.failure().get());
    }
    return failure ? ir::makeError(*failure) : ir::success();
  }
  ir::Error check(cudaError_t status, const char* what) { return fail(checkCuda(status, what)); }

  ir::Error waitFor(cudaStream_t stream, const char* what) {
    if (!ranks) return check(cudaStreamSynchronize(stream), what);
    return fail(ranks->wait([&] { return cudaStreamQuery(stream); }, what));
  }
  ir::Error waitFor(cudaEvent_t event, const char* what) {
    if (!ranks) return check(cudaEventSynchronize(event), what);
    return fail(ranks->wait([&] { return cudaEventQuery(event); }, what));
  }

  /// All streams, whatever fails: what is under way may use bytes that the caller is about to free.
  /// Those of the GPU first, whose waits notice a rank that is gone; threads may wait for them.
  ir::Error synchronize() {
    for (const ir::Stream stream : {ir::Stream::kCompute, ir::Stream::kCollective,
                                    ir::Stream::kDeviceToHost, ir::Stream::kHostToDevice}) {
      dropError(waitFor(raw(stream), "a kernel or a copy of the step"));
    }
    dropError(threads.drain());
    return fail(ir::success());
  }

  /// Lets libtorch allocate a workspace, and gives it the region.
  ir::Error placeWorkspace(const ir::ReservedRegion& region, void (*allocate)()) {
    LaunchPlacement placement;
    placement.results.push_back({0, region.offset.value(), region.bytes});
    allocator.beginLaunch(placement, "the workspace of " + region.what);
    allocations.serving.store(&allocator, std::memory_order_release);
    ir::Error called = callTorch("making the workspace of " + region.what, [&] {
      const c10::cuda::CUDAStreamGuard guard(compute);
      const ServedThread served(allocations);
      allocate();
    });
    allocations.serving.store(nullptr, std::memory_order_release);
    ir::Error placed = allocator.endLaunch();
    if (!placed) return called;
    dropError(std::move(called));
    return placed;
  }
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_STATE_H_
