// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_device.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/cuda_rng.h"
#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/cuda_workspaces.h"
#include "runtime/cuda/served_cuda_allocator.h"
#include "runtime/launcher.h"
#include "runtime/torch_boundary.h"

namespace stowage::runtime {

using ir::Space;
using ir::Stream;

namespace {

/// A stream for copies, that does not wait for the default stream.
class CopyStream {
 public:
  static ir::Expected<CopyStream> make() {
    cudaStream_t stream = nullptr;
    if (ir::Error error = checkCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                    "making a stream for copies")) {
      return error;
    }
    return CopyStream(stream);
  }
  CopyStream(CopyStream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  CopyStream& operator=(CopyStream&&) = delete;
  ~CopyStream() {
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }
  cudaStream_t get() const { return stream_; }

 private:
  explicit CopyStream(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t stream_;
};

}  // namespace

/// What the device shares with its programs.
struct CudaDevice::Shared {
  DeviceArena device;
  PinnedArena host;
  StepAllocator allocator;
  AllocationSource allocations;
  c10::cuda::CUDAStream compute;
  CopyStream out;
  CopyStream in;
  std::optional<ir::PlanError> failure;

  Shared(DeviceArena deviceArena, PinnedArena hostArena, int64_t alignBytes,
         c10::cuda::CUDAStream computeStream, CopyStream outStream, CopyStream inStream)
      : device(std::move(deviceArena)),
        host(std::move(hostArena)),
        allocator(device.base(), device.bytes(), alignBytes),
        compute(computeStream),
        out(std::move(outStream)),
        in(std::move(inStream)) {}
  ~Shared() {
    dropWorkspaces(compute);
    CudaArenaRegistration::remove(allocator);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  uint8_t* at(Space space, int64_t offset) const {
    return (space == Space::kHost ? host.base() : device.base()) + offset;
  }
  cudaStream_t raw(Stream stream) const {
    switch (stream) {
      case Stream::kDeviceToHost:
        return out.get();
      case Stream::kHostToDevice:
        return in.get();
      default:
        return compute.stream();
    }
  }

  /// Keeps the first failure, which is the cause of the others.
  ir::Error fail(ir::Error error) {
    if (error) {
      ir::PlanError found = ir::takePayload(std::move(error));
      if (!failure) failure = std::move(found);
    }
    return failure ? ir::makeError(*failure) : ir::success();
  }
  ir::Error check(cudaError_t status, const char* what) { return fail(checkCuda(status, what)); }

  /// Lets libtorch allocate a workspace, and gives it the region.
  ir::Error placeWorkspace(const ir::ReservedRegion& region, void (*allocate)()) {
    RunPlacement placement;
    placement.results.push_back({0, region.offset.value(), region.bytes});
    allocator.beginRun(placement, "the workspace of " + region.what);
    allocations.serving.store(&allocator, std::memory_order_release);
    ir::Error called = callTorch("making the workspace of " + region.what, [&] {
      const c10::cuda::CUDAStreamGuard guard(compute);
      const ServedThread served(allocations);
      allocate();
    });
    allocations.serving.store(nullptr, std::memory_order_release);
    ir::Error placed = allocator.endRun();
    if (!placed) return called;
    llvm::consumeError(std::move(called));
    return placed;
  }
};

namespace {

class CudaEvents {
 public:
  static ir::Expected<CudaEvents> make(int32_t count) {
    CudaEvents events;
    for (int32_t i = 0; i < 2 * count; ++i) {
      cudaEvent_t event = nullptr;
      if (ir::Error error = checkCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                      "making an event")) {
        return error;
      }
      events.events_.push_back(event);
    }
    return events;
  }
  CudaEvents() = default;
  CudaEvents(CudaEvents&& other) noexcept : events_(std::exchange(other.events_, {})) {}
  CudaEvents& operator=(CudaEvents&&) = delete;
  ~CudaEvents() {
    for (cudaEvent_t event : events_) (void)cudaEventDestroy(event);
  }
  /// Steps take turns: this one's, and the one before.
  cudaEvent_t at(EventRef ref) const {
    return events_[static_cast<size_t>(2 * ref.event + (ref.step % 2))];
  }

 private:
  std::vector<cudaEvent_t> events_;
};

struct HandedOut {
  const uint8_t* from;
  llvm::MutableArrayRef<uint8_t> to;
};

void handOut(void* data) {
  const std::unique_ptr<HandedOut> delivery(static_cast<HandedOut*>(data));
  std::memcpy(delivery->to.data(), delivery->from, delivery->to.size());
}

class CudaProgram : public Program {
 public:
  CudaProgram(const ProgramSource& source, CudaDevice::Shared& device,
              std::unique_ptr<Launcher> launcher, CudaEvents events)
      : source_(source),
        device_(device),
        launcher_(std::move(launcher)),
        events_(std::move(events)) {}

  ir::Error beginStep(int64_t /*step*/) override { return ir::success(); }

  ir::Error wait(Stream stream, EventRef event) override {
    return device_.check(cudaStreamWaitEvent(device_.raw(stream), events_.at(event), 0),
                         "waiting for an event");
  }
  ir::Error record(Stream stream, EventRef event) override {
    return device_.check(cudaEventRecord(events_.at(event), device_.raw(stream)),
                         "recording an event");
  }

  ir::Error run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) override {
    const c10::cuda::CUDAStreamGuard guard(device_.compute);
    const ServedThread served(device_.allocations);
    return device_.fail(
        launcher_->launch(command, scalars, device_.allocator, device_.allocations));
  }

  ir::Error copy(ir::CommandId id) override {
    const ir::Command& command = source_.schedule.command(id);
    const ir::Residency& from = source_.schedule.residency(command.from);
    const ir::Residency& to = source_.schedule.residency(command.to);
    const auto bytes = static_cast<size_t>(source_.graph.storage(from.storage).bytes.value());
    return device_.check(
        cudaMemcpyAsync(device_.at(to.space, to.offset), device_.at(from.space, from.offset), bytes,
                        command.stream == Stream::kDeviceToHost ? cudaMemcpyDeviceToHost
                                                                : cudaMemcpyHostToDevice,
                        device_.raw(command.stream)),
        "starting a copy");
  }

  ir::Error deliver(const Delivery& delivery) override {
    auto handed = std::make_unique<HandedOut>(
        HandedOut{device_.at(Space::kHost, delivery.hostOffset), delivery.to});
    ir::Error error =
        device_.check(cudaLaunchHostFunc(device_.raw(delivery.stream), handOut, handed.get()),
                      "handing out an output");
    if (!error) (void)handed.release();
    return error;
  }

  ir::Error waitOnHost(EventRef event) override {
    return device_.check(cudaEventSynchronize(events_.at(event)), "a kernel or a copy of the step");
  }

 private:
  ProgramSource source_;
  CudaDevice::Shared& device_;
  std::unique_ptr<Launcher> launcher_;
  CudaEvents events_;
};

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
  if (target.deterministic != at::globalContext().deterministicAlgorithms()) {
    return mismatch(std::string("deterministic algorithms ") +
                    (target.deterministic ? "on" : "off") + ", libtorch has them " +
                    (target.deterministic ? "off" : "on"));
  }
  if (target.deterministic && at::globalContext().deterministicFillUninitializedMemory()) {
    return ir::makeError(
        ir::ErrorCode::kEnvironment,
        "libtorch fills fresh tensors (deterministicFillUninitializedMemory), which "
        "would overwrite operands whose bytes a result takes over");
  }
  return ir::success();
}

ir::Error checkCommands(const ProgramSource& source) {
  for (const ir::Command& command : source.schedule.commands) {
    if (command.stream != Stream::kCompute && command.stream != Stream::kDeviceToHost &&
        command.stream != Stream::kHostToDevice) {
      return ir::makeError(
          ir::ErrorCode::kUnsupported,
          std::string("the CUDA device has no stream '") + ir::streamName(command.stream) + "'");
    }
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

void makeCublasWorkspace() { (void)at::cuda::getCurrentCUDABlasHandle(); }
void makeCublasLtWorkspace() { (void)at::cuda::getCUDABlasLtWorkspace(); }

ir::Error placeWorkspaces(CudaDevice::Shared& device, const ir::Schedule& schedule) {
  dropWorkspaces(device.compute);
  for (const ir::ReservedRegion& region : schedule.reserved) {
    const bool isLt = region.what == "cublaslt";
    if (!isLt && region.what != "cublas") {
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           "the plan reserves a workspace for '" + region.what + "'");
    }
    const auto wanted = static_cast<int64_t>(isLt ? at::cuda::getCUDABlasLtWorkspaceSize()
                                                  : at::cuda::getChosenWorkspaceSize());
    if (wanted != region.bytes.value()) {
      return mismatch("a workspace of " + region.what + " of " +
                      std::to_string(region.bytes.value()) + " bytes, libtorch takes " +
                      std::to_string(wanted) + " here");
    }
    if (ir::Error error =
            device.placeWorkspace(region, isLt ? makeCublasLtWorkspace : makeCublasWorkspace)) {
      return error;
    }
  }
  return ir::success();
}

}  // namespace

ir::Expected<std::unique_ptr<CudaDevice>> CudaDevice::open(const GpuDeviceOptions& options) {
  auto device = DeviceArena::allocate(options.deviceBytes);
  if (!device) return device.takeError();
  auto host = PinnedArena::allocate(options.hostBytes, options.pinning);
  if (!host) return host.takeError();
  auto out = CopyStream::make();
  if (!out) return out.takeError();
  auto in = CopyStream::make();
  if (!in) return in.takeError();
  auto compute = callTorch("making the compute stream", [] {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    installServedCudaAllocator();
    return c10::cuda::getStreamFromPool();
  });
  if (!compute) return compute.takeError();
  auto shared = std::make_unique<Shared>(std::move(*device), std::move(*host), options.alignBytes,
                                         *compute, std::move(*out), std::move(*in));
  if (ir::Error error = CudaArenaRegistration::add(shared->allocator)) return error;
  return std::unique_ptr<CudaDevice>(new CudaDevice(std::move(shared)));
}

CudaDevice::CudaDevice(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

CudaDevice::~CudaDevice() { llvm::consumeError(synchronize()); }

Bytes CudaDevice::arenaBytes(Space space) const {
  if (space == Space::kDisk) return Bytes(0);
  return space == Space::kHost ? shared_->host.bytes() : shared_->device.bytes();
}

ir::Expected<std::unique_ptr<Program>> CudaDevice::load(const ProgramSource& source) {
  if (ir::Error error = synchronize()) return error;
  if (ir::Error error = checkTarget(source.target)) return error;
  if (ir::Error error = checkCommands(source)) return error;
  if (ir::Error error = placeWorkspaces(*shared_, source.schedule)) return error;
  auto launcher =
      Launcher::make(source, c10::Device(c10::DeviceType::CUDA, c10::cuda::current_device()),
                     {shared_->device.base(), shared_->host.base()}, makeCudaRngKeeper());
  if (!launcher) return launcher.takeError();
  auto events = CudaEvents::make(source.eventCount);
  if (!events) return events.takeError();
  return std::make_unique<CudaProgram>(source, *shared_, std::move(*launcher), std::move(*events));
}

ir::Error CudaDevice::write(Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) {
  uint8_t* to = shared_->at(space, offset);
  if (space == Space::kHost) {
    std::memcpy(to, bytes.data(), bytes.size());
    return ir::success();
  }
  return shared_->check(cudaMemcpy(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
                        "writing to the device arena");
}

ir::Error CudaDevice::read(Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) {
  const uint8_t* from = shared_->at(space, offset);
  if (space == Space::kHost) {
    std::memcpy(bytes.data(), from, bytes.size());
    return ir::success();
  }
  return shared_->check(cudaMemcpy(bytes.data(), from, bytes.size(), cudaMemcpyDeviceToHost),
                        "reading from the device arena");
}

ir::Error CudaDevice::fill(Space space, llvm::ArrayRef<uint8_t> pattern) {
  const Bytes all = arenaBytes(space);
  uint8_t* base = shared_->at(space, 0);
  const auto period = static_cast<int64_t>(pattern.size());
  for (int64_t at = 0; at < all.value(); at += period) {
    const auto bytes = static_cast<size_t>(std::min(period, all.value() - at));
    if (at == 0 || space == Space::kHost) {
      if (ir::Error error = write(space, at, pattern.take_front(bytes))) return error;
      continue;
    }
    if (ir::Error error = shared_->check(
            cudaMemcpyAsync(base + at, base, bytes, cudaMemcpyDeviceToDevice, shared_->in.get()),
            "filling the device arena")) {
      return error;
    }
  }
  return synchronize();
}

ir::Error CudaDevice::synchronize() {
  for (const Stream stream : {Stream::kCompute, Stream::kDeviceToHost, Stream::kHostToDevice}) {
    if (ir::Error error = shared_->check(cudaStreamSynchronize(shared_->raw(stream)),
                                         "a kernel or a copy of the step")) {
      return error;
    }
  }
  return ir::success();
}

int64_t CudaDevice::allocationsOutside() const { return shared_->allocations.passedOn.load(); }

}  // namespace stowage::runtime
