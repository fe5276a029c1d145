// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_device.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/cuda/cuda_program.h"
#include "runtime/cuda/cuda_rng.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/cuda/host_ops.h"
#include "runtime/cuda/placed_workspaces.h"
#include "runtime/cuda/used_memory.h"
#include "runtime/executor/wall_time.h"
#include "runtime/machine/host_room.h"
#include "runtime/torch/deterministic_mode.h"
#include "runtime/torch/launcher.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

using ir::Space;
using ir::Stream;

namespace {

ir::Error mismatch(const std::string& what) {
  return ir::makeError(ir::ErrorCode::kPlanMismatch, "the plan is for " + what);
}

ir::Error checkTarget(const ir::Target& target) {
  if (target.device != ir::DeviceKind::kCuda) {
    return mismatch(std::string("device '") + ir::deviceKindName(target.device) +
                    "', this is a GPU");
  }
  const cudaDeviceProp* properties = at::cuda::getCurrentDeviceProperties();
  const int capability = 10 * properties->major + properties->minor;
  if (target.computeCapability != capability) {
    return mismatch("compute capability " + std::to_string(target.computeCapability) +
                    " (target '" + target.profile + "'), this GPU (" + properties->name + ") has " +
                    std::to_string(capability));
  }
  const long cudnn = at::detail::getCUDAHooks().versionRuntimeCuDNN();  // NOLINT: their type
  if (target.cudnnVersion != cudnn) {
    return mismatch("cuDNN " + std::to_string(target.cudnnVersion) + ", found " +
                    std::to_string(cudnn));
  }
  return checkDeterministicMode(target.deterministic);
}

ir::Error checkCommands(const ProgramSource& source) {
  if (source.graph.ranks() > 1 && source.schedule.graphMode != ir::GraphMode::kNone) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "a CUDA graph holds no collectives of several ranks: plan with --launch "
                         "none");
  }
  for (const ir::Command& command : source.schedule.commands) {
    // The generator that is kept is the GPU's.
    if (command.kind != ir::CommandKind::kRun || command.rngSlot < 0) continue;
    for (const ir::ValueId result : source.graph.node(command.node).results) {
      if (!result.isValid()) continue;
      const ir::Storage& storage = source.graph.storage(source.graph.value(result).storage);
      if (storage.home == Space::kDevice) continue;
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           source.graph.describeNode(command.node) +
                               " draws random numbers on the host of a CUDA step");
    }
  }
  return ir::success();
}

ir::Error forKept(ir::Error error, Bytes bytes) {
  ir::PlanError refused = ir::takePayload(std::move(error));
  refused.note("a released device arena needs " + formatBytes(bytes) +
               " of pinned host memory for the state in it");
  return ir::makeError(std::move(refused));
}

}  // namespace

ir::Expected<std::unique_ptr<CudaDevice>> CudaDevice::open(const GpuDeviceOptions& options) {
  if (ir::Error error = checkRoom(options.deviceBytes, options.outside)) return error;
  const bool isRank = options.ranks != nullptr;
  auto device = DeviceArena::allocate(options.deviceBytes,
                                      isRank ? MemoryUsers::kRanks : MemoryUsers::kThisProcess);
  if (!device) return device.takeError();
  auto host = PinnedArena::allocate(options.hostBytes, options.pinning, options.mostHostBytes);
  if (!host) return host.takeError();
  auto streams = CopyStreams::make();
  if (!streams) return streams.takeError();
  if (ir::Error error = callTorch("preparing the GPU", [] {
        at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
        installServedCudaAllocator();
      })) {
    return error;
  }
  ir::Expected<OpStreams> opStreams = OpStreams::take();
  if (!opStreams) return opStreams.takeError();
  auto state = std::make_unique<CudaState>(std::move(*device), std::move(*host), options.alignBytes,
                                           std::move(*opStreams), std::move(*streams));
  if (options.disk.bytes > Bytes(0)) {
    auto disk =
        DiskFile::create(options.disk.folder, options.disk.bytes, {.verify = options.disk.verify});
    if (!disk) return disk.takeError();
    state->disk = std::move(*disk);
  }
  if (isRank) {
    ir::Expected<std::unique_ptr<GpuRanks>> ranks = GpuRanks::join(*options.ranks, state->device);
    if (!ranks) return ranks.takeError();
    state->ranks = std::move(*ranks);
  }
  if (ir::Error error = CudaArenaRegistration::add(state->allocator)) return error;
  return std::unique_ptr<CudaDevice>(new CudaDevice(std::move(state)));
}

CudaDevice::CudaDevice(std::unique_ptr<CudaState> state) : state_(std::move(state)) {}

CudaDevice::~CudaDevice() { dropError(synchronize()); }

Bytes CudaDevice::arenaBytes(Space space) const {
  if (space == Space::kDisk) return state_->disk ? state_->disk->bytes() : Bytes(0);
  return space == Space::kHost ? state_->host.bytes() : state_->device.bytes();
}

ir::Expected<std::unique_ptr<Program>> CudaDevice::load(const ProgramSource& source) {
  if (ir::Error error = synchronize()) return error;
  if (ir::Error error = checkTarget(source.target)) return error;
  if (ir::Error error = checkCommands(source)) return error;
  if (ir::Error error = placeWorkspaces(*state_, source.schedule)) return error;
  const ArenaBases bases{state_->device.base(), state_->host.base()};
  const auto makeLauncher = [&](Stream stream) {
    return Launcher::make(source, stream,
                          c10::Device(c10::DeviceType::CUDA, c10::cuda::current_device()), bases,
                          makeCudaRngKeeper());
  };
  auto launcher = makeLauncher(Stream::kCompute);
  if (!launcher) return launcher.takeError();
  auto linkLauncher = makeLauncher(Stream::kCollective);
  if (!linkLauncher) return linkLauncher.takeError();
  auto hostOps = HostOps::make(source, bases, state_->host.bytes());
  if (!hostOps) return hostOps.takeError();
  return makeCudaProgram(source, *state_, {std::move(*launcher), std::move(*linkLauncher)},
                         std::move(*hostOps));
}

ir::Error CudaDevice::write(Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) {
  if (space == Space::kDisk) {
    return state_->fail(
        state_->disk->write(offset, bytes.data(), static_cast<int64_t>(bytes.size())));
  }
  uint8_t* to = state_->at(space, offset);
  if (space == Space::kHost) {
    std::memcpy(to, bytes.data(), bytes.size());
    return ir::success();
  }
  // From pageable memory the call may return before the last bytes are in place, and streams of the
  // step do not wait for the default stream.
  if (ir::Error error =
          state_->check(cudaMemcpy(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
                        "writing to the device arena")) {
    return error;
  }
  return state_->check(cudaStreamSynchronize(cudaStreamLegacy), "writing to the device arena");
}

ir::Error CudaDevice::read(Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) {
  if (space == Space::kDisk) {
    return state_->fail(
        state_->disk->read(offset, bytes.data(), static_cast<int64_t>(bytes.size())));
  }
  const uint8_t* from = state_->at(space, offset);
  if (space == Space::kHost) {
    std::memcpy(bytes.data(), from, bytes.size());
    return ir::success();
  }
  return state_->check(cudaMemcpy(bytes.data(), from, bytes.size(), cudaMemcpyDeviceToHost),
                       "reading from the device arena");
}

ir::Error CudaDevice::fill(Space space, llvm::ArrayRef<uint8_t> pattern) {
  const Bytes all = arenaBytes(space);
  uint8_t* base = state_->at(space, 0);
  const auto period = static_cast<int64_t>(pattern.size());
  for (int64_t at = 0; at < all.value(); at += period) {
    const auto bytes = static_cast<size_t>(std::min(period, all.value() - at));
    if (at == 0 || space == Space::kHost) {
      if (ir::Error error = write(space, at, pattern.take_front(bytes))) return error;
      continue;
    }
    if (ir::Error error = state_->check(
            cudaMemcpyAsync(base + at, base, bytes, cudaMemcpyDeviceToDevice, state_->in.get()),
            "filling the device arena")) {
      return error;
    }
  }
  return synchronize();
}

ir::Error CudaDevice::move(Space from, int64_t fromOffset, Space to, int64_t toOffset,
                           Bytes bytes) {
  if (from == Space::kDisk || to == Space::kDisk) {
    return Device::move(from, fromOffset, to, toOffset, bytes);
  }
  const char* what = "moving state between two plans";
  if (ir::Error error = state_->check(
          cudaMemcpyAsync(state_->at(to, toOffset), state_->at(from, fromOffset),
                          static_cast<size_t>(bytes.value()), cudaMemcpyDefault, state_->in.get()),
          what)) {
    return error;
  }
  return state_->check(cudaStreamSynchronize(state_->in.get()), what);
}

ir::Error CudaDevice::growHost(Bytes bytes) { return state_->host.grow(bytes, {}); }

ir::Error CudaDevice::keep(llvm::ArrayRef<ir::ByteRange> kept, Nanoseconds& took) {
  const Bytes bytes = totalBytes(kept);
  std::optional<PinnedArena>& room = state_->kept;
  if (!room || room->bytes() < bytes) {
    room.reset();
    if (ir::Error error = checkHostRoom(bytes, "the state of a released device arena")) {
      return error;
    }
    ir::Expected<PinnedArena> made = PinnedArena::allocate(bytes, {});
    if (!made) return forKept(made.takeError(), bytes);
    room.emplace(std::move(*made));
  }
  state_->keptRanges = kept.vec();
  const Nanoseconds begin = wallTime();
  if (ir::Error error = copyKept(/*out=*/true)) return error;
  took = wallTime() - begin;
  return ir::success();
}

// Ranks release and restore together or not at all.
ir::Expected<ArenaCopy> CudaDevice::release(llvm::ArrayRef<ir::ByteRange> kept) {
  const Nanoseconds begin = wallTime();
  if (ir::Error error = synchronize()) return error;
  Nanoseconds copying;
  ir::Error own = keep(kept, copying);
  if (ir::Error error = state_->ranks ? state_->ranks->vote(std::move(own)) : std::move(own)) {
    return error;
  }
  if (state_->ranks) {
    if (ir::Error error = state_->fail(state_->ranks->leaveArena())) return error;
  }
  if (ir::Error error = state_->fail(state_->device.release())) return error;
  return ArenaCopy{totalBytes(kept), copying, wallTime() - begin};
}

ir::Expected<ArenaCopy> CudaDevice::restore(llvm::ArrayRef<uint8_t> pattern) {
  const Nanoseconds begin = wallTime();
  // No failure of the device: it can be tried again.
  ir::Error own = state_->device.restore();
  if (ir::Error error = state_->ranks ? state_->ranks->vote(std::move(own)) : std::move(own)) {
    return error;
  }
  if (state_->ranks) {
    if (ir::Error error = state_->fail(state_->ranks->meetInArena())) return error;
  }
  if (ir::Error error = fill(Space::kDevice, pattern)) return error;
  const Nanoseconds copyBegin = wallTime();
  if (ir::Error error = copyKept(/*out=*/false)) return error;
  const Nanoseconds end = wallTime();
  return ArenaCopy{totalBytes(state_->keptRanges), end - copyBegin, end - begin};
}

/// From the device arena into the pinned memory, or back.
ir::Error CudaDevice::copyKept(bool out) {
  cudaStream_t stream = out ? state_->out.get() : state_->in.get();
  const char* what = "copying what a released device arena holds";
  uint8_t* held = state_->kept->base();
  for (const ir::ByteRange& range : state_->keptRanges) {
    const auto bytes = static_cast<size_t>(range.end - range.begin);
    uint8_t* own = state_->at(Space::kDevice, range.begin);
    const cudaError_t status =
        out ? cudaMemcpyAsync(held, own, bytes, cudaMemcpyDeviceToHost, stream)
            : cudaMemcpyAsync(own, held, bytes, cudaMemcpyHostToDevice, stream);
    if (ir::Error error = state_->check(status, what)) return error;
    held += bytes;
  }
  return state_->check(cudaStreamSynchronize(stream), what);
}

ir::Error CudaDevice::synchronize() { return state_->synchronize(); }

std::optional<Bytes> CudaDevice::servedPeak() const { return state_->allocator.servedPeak(); }

int64_t CudaDevice::allocationsOutside() const {
  const int64_t unserved = state_->allocations.passedOn.load();
  return unserved + (state_->givenAway ? CudaState::countGivenAway() - *state_->givenAway : 0);
}

std::string CudaDevice::transport() const {
  return state_->ranks ? state_->ranks->transport() : std::string();
}

std::optional<Bytes> CudaDevice::memoryOutside() const {
  return runtime::memoryOutside(state_->device.memory());
}

}  // namespace stowage::runtime
