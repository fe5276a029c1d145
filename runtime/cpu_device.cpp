// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu_device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/failure_latch.h"
#include "runtime/launcher.h"
#include "runtime/mapped_arena.h"
#include "runtime/served_allocator.h"
#include "runtime/step_allocator.h"
#include "runtime/stream_queue.h"
#include "runtime/throttled_link.h"

namespace stowage::runtime {

using ir::Space;
using ir::Stream;

/// What the device shares with its programs.
struct CpuDevice::Shared {
  CpuDeviceOptions options;
  MappedArena device;
  MappedArena host;
  StepAllocator allocator;
  AllocationSource allocations;
  FailureLatch failure;
  std::array<std::unique_ptr<StreamQueue>, ir::kStreamCount> queues;  // last: they use the others

  Shared(const CpuDeviceOptions& given, MappedArena deviceArena, MappedArena hostArena)
      : options(given),
        device(std::move(deviceArena)),
        host(std::move(hostArena)),
        allocator(device.base(), device.bytes(), given.alignBytes) {}
  ~Shared() { ArenaRegistration::remove(allocator); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  StreamQueue& queue(Stream stream) {
    auto& own = queues[static_cast<size_t>(stream)];
    if (own) return *own;
    own = std::make_unique<StreamQueue>();
    if (stream == Stream::kCompute) own->push([this] { prepareComputeThread(); });
    return *own;
  }

  void prepareComputeThread() {
    at::set_num_threads(options.intraOpThreads);
    registerAllocatingThreads(&allocations);
  }

  MappedArena& arena(Space space) { return space == Space::kHost ? host : device; }
  uint8_t* at(Space space, int64_t offset) { return arena(space).base() + offset; }

  ThrottledLink link(Stream stream) const {
    if (!options.links) return ThrottledLink(std::nullopt);
    return ThrottledLink(linkRate(*options.links, stream));
  }
};

namespace {

class CpuProgram : public Program {
 public:
  CpuProgram(const ProgramSource& source, CpuDevice::Shared& device,
             std::unique_ptr<Launcher> launcher)
      : source_(source),
        device_(device),
        launcher_(std::move(launcher)),
        events_(source.eventCount) {}

  ir::Error beginStep(int64_t /*step*/) override { return ir::success(); }

  ir::Error wait(Stream stream, EventRef event) override {
    device_.queue(stream).push([this, event] { events_.wait(event); });
    return ir::success();
  }

  ir::Error record(Stream stream, EventRef event) override {
    device_.queue(stream).push([this, event] { events_.signal(event); });
    return ir::success();
  }

  ir::Error run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) override {
    const Stream stream = source_.schedule.command(command).stream;
    pushWork(stream, [this, command, values = scalars.vec()] {
      device_.failure.set(
          launcher_->launch(command, values, device_.allocator, device_.allocations));
    });
    return ir::success();
  }

  ir::Error copy(ir::CommandId id) override {
    const ir::Command& command = source_.schedule.command(id);
    const ir::Residency& from = source_.schedule.residency(command.from);
    const ir::Residency& to = source_.schedule.residency(command.to);
    const Bytes bytes = source_.graph.storage(from.storage).bytes;
    const auto* source = device_.at(from.space, from.offset);
    auto* target = device_.at(to.space, to.offset);
    pushWork(command.stream, [link = device_.link(command.stream), source, target, bytes] {
      link.copy(target, source, bytes);
    });
    return ir::success();
  }

  ir::Error deliver(const Delivery& delivery) override {
    pushWork(delivery.stream, [from = device_.at(Space::kHost, delivery.hostOffset), delivery] {
      std::memcpy(delivery.to.data(), from, delivery.to.size());
    });
    return ir::success();
  }

  ir::Error waitOnHost(EventRef event) override {
    events_.wait(event);
    return device_.failure.get();
  }

 private:
  // After a failure nothing is touched any more, but events go on: nobody waits for ever.
  template <typename Work>
  void pushWork(Stream stream, Work work) {
    device_.queue(stream).push([this, work = std::move(work)] {
      if (!device_.failure.isSet()) work();
    });
  }

  ProgramSource source_;
  CpuDevice::Shared& device_;
  std::unique_ptr<Launcher> launcher_;
  EventCounters events_;
};

ir::Error checkStreams(const ir::Schedule& schedule) {
  for (const ir::Command& command : schedule.commands) {
    if (command.stream == Stream::kCompute || command.stream == Stream::kDeviceToHost ||
        command.stream == Stream::kHostToDevice) {
      continue;
    }
    return ir::makeError(
        ir::ErrorCode::kUnsupported,
        std::string("the CPU device has no stream '") + ir::streamName(command.stream) + "'");
  }
  return ir::success();
}

ir::Error checkTarget(const ir::Target& target, const CpuDeviceOptions& options) {
  const auto mismatch = [](const std::string& what) {
    return ir::makeError(ir::ErrorCode::kPlanMismatch, "the plan is for " + what);
  };
  if (target.device != ir::DeviceKind::kCpu) {
    return mismatch(std::string("device '") + ir::deviceKindName(target.device) +
                    "', this is the CPU");
  }
  if (target.intraOpThreads != options.intraOpThreads) {
    return mismatch(std::to_string(target.intraOpThreads) + " intra-op threads, the device has " +
                    std::to_string(options.intraOpThreads));
  }
  if (target.alignBytes % options.alignBytes != 0) {
    return mismatch("an alignment of " + std::to_string(target.alignBytes) +
                    " bytes, the device has " + std::to_string(options.alignBytes));
  }
  if (target.deterministic != at::globalContext().deterministicAlgorithms()) {
    return mismatch(std::string("deterministic algorithms ") +
                    (target.deterministic ? "on" : "off") + ", libtorch has them " +
                    (target.deterministic ? "off" : "on"));
  }
  return ir::success();
}

}  // namespace

ir::Expected<std::unique_ptr<CpuDevice>> CpuDevice::open(const CpuDeviceOptions& options) {
  auto device = MappedArena::map(options.deviceBytes, "the device arena");
  if (!device) return device.takeError();
  auto host = MappedArena::map(options.hostBytes, "the host arena");
  if (!host) return host.takeError();
  installServedAllocator();
  auto shared = std::make_unique<Shared>(options, std::move(*device), std::move(*host));
  if (ir::Error error = ArenaRegistration::add(shared->allocator)) return error;
  return std::unique_ptr<CpuDevice>(new CpuDevice(std::move(shared)));
}

CpuDevice::CpuDevice(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

CpuDevice::~CpuDevice() = default;

Bytes CpuDevice::arenaBytes(Space space) const {
  return space == Space::kDisk ? Bytes(0) : shared_->arena(space).bytes();
}

ir::Expected<std::unique_ptr<Program>> CpuDevice::load(const ProgramSource& source) {
  if (ir::Error error = checkTarget(source.target, shared_->options)) return error;
  if (ir::Error error = checkStreams(source.schedule)) return error;
  auto launcher = Launcher::make(source, c10::Device(c10::DeviceType::CPU),
                                 {shared_->device.base(), shared_->host.base()});
  if (!launcher) return launcher.takeError();
  return std::make_unique<CpuProgram>(source, *shared_, std::move(*launcher));
}

ir::Error CpuDevice::write(Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) {
  std::memcpy(shared_->at(space, offset), bytes.data(), bytes.size());
  return ir::success();
}

ir::Error CpuDevice::read(Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) {
  std::memcpy(bytes.data(), shared_->at(space, offset), bytes.size());
  return ir::success();
}

ir::Error CpuDevice::synchronize() {
  for (const auto& queue : shared_->queues) {
    if (queue) queue->drain();
  }
  return shared_->failure.get();
}

llvm::MutableArrayRef<uint8_t> CpuDevice::arena(Space space) {
  MappedArena& own = shared_->arena(space);
  return {own.base(), static_cast<size_t>(own.bytes().value())};
}

}  // namespace stowage::runtime
