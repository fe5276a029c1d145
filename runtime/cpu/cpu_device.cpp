// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cpu_device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/collectives/collective_ops.h"
#include "runtime/cpu/thread_trial.h"
#include "runtime/cpu/throttled_link.h"
#include "runtime/disk/disk_file.h"
#include "runtime/executor/queued_program.h"
#include "runtime/executor/wall_time.h"
#include "runtime/machine/host_room.h"
#include "runtime/memory/mapped_arena.h"
#include "runtime/memory/step_allocator.h"
#include "runtime/torch/deterministic_mode.h"
#include "runtime/torch/launcher.h"
#include "runtime/torch/served_allocator.h"

namespace stowage::runtime {

using ir::Space;
using ir::Stream;

namespace {

constexpr const char* kDeviceArena = "the device arena";
constexpr const char* kHostArena = "the host arena";
constexpr const char* kKeptState = "the state of a released device arena";

/// What a released device arena held, range after range.
struct KeptBytes {
  std::vector<ir::ByteRange> ranges;
  MappedArena bytes;
};

}  // namespace

/// What the device shares with its programs.
struct CpuDevice::Shared {
  CpuDeviceOptions options;
  MappedArena device;
  MappedArena host;
  std::unique_ptr<DiskFile> disk;  // null: none
  std::optional<KeptBytes> kept;   // while the device arena is released
  StepAllocator allocator;
  AllocationSource allocations;
  StepAllocator linkAllocator;  // of collectives, which run beside ops
  AllocationSource linkAllocations;
  // Ops on the host work in place; the little that they allocate is the process's.
  StepAllocator hostAllocator;
  AllocationSource hostAllocations;
  // Each copying stream's own.
  ThrottledLink toHost;
  ThrottledLink toDevice;
  QueuedStreams streams{[this](Stream stream) { prepareThread(stream); }};

  Shared(const CpuDeviceOptions& given, MappedArena deviceArena, MappedArena hostArena)
      : options(given),
        device(std::move(deviceArena)),
        host(std::move(hostArena)),
        allocator(device.base(), device.bytes(), given.alignBytes),
        linkAllocator(device.base(), device.bytes(), given.alignBytes),
        hostAllocator(host.base(), host.bytes(), given.alignBytes),
        toHost(makeLink(Stream::kDeviceToHost)),
        toDevice(makeLink(Stream::kHostToDevice)) {}
  ~Shared() { ArenaRegistration::remove(allocator); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  void prepareThread(Stream stream) {
    const bool onLink = stream == Stream::kCollective;
    if (stream != Stream::kCompute && stream != Stream::kHostCompute && !onLink) return;
    at::set_num_threads(options.intraOpThreads);
    if (stream == Stream::kHostCompute) return;
    registerAllocatingThreads(onLink ? &linkAllocations : &allocations);
    if (onLink) useRanks(options.ranks);
  }

  MappedArena& arena(Space space) { return space == Space::kHost ? host : device; }
  uint8_t* at(Space space, int64_t offset) { return arena(space).base() + offset; }

  ThrottledLink& link(Stream stream) { return stream == Stream::kDeviceToHost ? toHost : toDevice; }

 private:
  ThrottledLink makeLink(Stream stream) const {
    if (!options.links) return ThrottledLink(std::nullopt);
    return ThrottledLink(linkRate(*options.links, stream));
  }
};

namespace {

/// One for each stream that runs ops; null where a step runs none there.
struct Launchers {
  std::unique_ptr<Launcher> compute;
  std::unique_ptr<Launcher> host;
  std::unique_ptr<Launcher> link;
};

class CpuProgram : public QueuedProgram {
 public:
  CpuProgram(const ProgramSource& source, CpuDevice::Shared& device, Launchers launchers)
      : QueuedProgram(source, device.streams, device.host.base()),
        device_(device),
        launchers_(std::move(launchers)) {}

 private:
  ir::Error runNow(ir::CommandId id, llvm::ArrayRef<ScalarValue> scalars) override {
    const Stream stream = source().schedule.command(id).stream;
    if (stream == Stream::kCollective) return runCollective(id, scalars);
    if (stream == Stream::kHostCompute) {
      return launchers_.host->launch(id, scalars, device_.hostAllocator, device_.hostAllocations);
    }
    return launchers_.compute->launch(id, scalars, device_.allocator, device_.allocations);
  }

  ir::Error runCollective(ir::CommandId id, llvm::ArrayRef<ScalarValue> scalars) {
    ir::Error error =
        launchers_.link->launch(id, scalars, device_.linkAllocator, device_.linkAllocations);
    const Communicator* ranks = device_.options.ranks;
    if (!error || ranks == nullptr || !ranks->failure()) return error;
    // Which kind of error it is got lost in libtorch.
    llvm::consumeError(std::move(error));
    const ir::NodeId node = source().schedule.command(id).node;
    return ir::makeError(ranks->failure()->code(),
                         source().graph.describeNode(node) + ": " + ranks->failure()->text());
  }

  ir::Error copyNow(ir::CommandId id) override {
    const ir::Command& command = source().schedule.command(id);
    const ir::Residency& from = source().schedule.residency(command.from);
    const ir::Residency& to = source().schedule.residency(command.to);
    const Bytes bytes = source().graph.storage(from.storage).bytes;
    if (from.space == Space::kDisk) {
      return device_.disk->read(from.offset, device_.at(to.space, to.offset), bytes.value());
    }
    if (to.space == Space::kDisk) {
      return device_.disk->write(to.offset, device_.at(from.space, from.offset), bytes.value());
    }
    device_.link(command.stream)
        .copy(device_.at(to.space, to.offset), device_.at(from.space, from.offset), bytes);
    return ir::success();
  }

  CpuDevice::Shared& device_;
  Launchers launchers_;
};

bool usesStream(const ir::Schedule& schedule, Stream stream) {
  return llvm::any_of(schedule.commands,
                      [&](const ir::Command& command) { return command.stream == stream; });
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
  return checkDeterministicMode(target.deterministic);
}

}  // namespace

ir::Expected<std::unique_ptr<CpuDevice>> CpuDevice::open(const CpuDeviceOptions& options) {
  if (ir::Error error = checkOpThreads(options.intraOpThreads)) return error;
  auto device = MappedArena::map(options.deviceBytes, kDeviceArena);
  if (!device) return device.takeError();
  auto host = MappedArena::map(options.hostBytes, kHostArena, options.mostHostBytes);
  if (!host) return host.takeError();
  // Beside the arenas, which stay.
  if (ir::Error error = checkThreadMemory(options.intraOpThreads + 1)) return error;
  installServedAllocator();
  auto shared = std::make_unique<Shared>(options, std::move(*device), std::move(*host));
  if (options.disk.bytes > Bytes(0)) {
    auto disk =
        DiskFile::create(options.disk.folder, options.disk.bytes, {.verify = options.disk.verify});
    if (!disk) return disk.takeError();
    shared->disk = std::move(*disk);
  }
  if (ir::Error error = ArenaRegistration::add(shared->allocator)) return error;
  return std::unique_ptr<CpuDevice>(new CpuDevice(std::move(shared)));
}

CpuDevice::CpuDevice(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

CpuDevice::~CpuDevice() = default;

Bytes CpuDevice::arenaBytes(Space space) const {
  if (space == Space::kDisk) return shared_->disk ? shared_->disk->bytes() : Bytes(0);
  return shared_->arena(space).bytes();
}

ir::Expected<std::unique_ptr<Program>> CpuDevice::load(const ProgramSource& source) {
  if (ir::Error error = checkTarget(source.target, shared_->options)) return error;
  const auto makeLauncher = [&](Stream stream) {
    return Launcher::make(source, stream, c10::Device(c10::DeviceType::CPU),
                          {shared_->device.base(), shared_->host.base()}, makeCpuRngKeeper());
  };
  Launchers launchers;
  for (const auto& [stream, own] : {std::pair(Stream::kCompute, &launchers.compute),
                                    std::pair(Stream::kHostCompute, &launchers.host),
                                    std::pair(Stream::kCollective, &launchers.link)}) {
    const bool isCompute = stream == Stream::kCompute;
    if (!isCompute && !usesStream(source.schedule, stream)) continue;
    // Its ops have a team of threads of their own.
    if (!isCompute) {
      if (ir::Error error = checkOpThreads(shared_->options.intraOpThreads)) return error;
    }
    auto made = makeLauncher(stream);
    if (!made) return made.takeError();
    *own = std::move(*made);
  }
  return std::make_unique<CpuProgram>(source, *shared_, std::move(launchers));
}

ir::Error CpuDevice::write(Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) {
  if (space == Space::kDisk) {
    return shared_->disk->write(offset, bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  std::memcpy(shared_->at(space, offset), bytes.data(), bytes.size());
  return ir::success();
}

ir::Error CpuDevice::read(Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) {
  if (space == Space::kDisk) {
    return shared_->disk->read(offset, bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  std::memcpy(bytes.data(), shared_->at(space, offset), bytes.size());
  return ir::success();
}

ir::Error CpuDevice::growHost(Bytes bytes) {
  return bytes <= shared_->host.bytes() ? ir::success() : shared_->host.grow(bytes, kHostArena);
}

ir::Expected<ArenaCopy> CpuDevice::release(llvm::ArrayRef<ir::ByteRange> kept) {
  const Nanoseconds begin = wallTime();
  const Bytes bytes = totalBytes(kept);
  if (ir::Error error = checkHostRoom(bytes, kKeptState)) return error;
  ir::Expected<MappedArena> room = MappedArena::map(bytes, kKeptState);
  if (!room) return room.takeError();
  const Nanoseconds copyingBegin = wallTime();
  uint8_t* to = room->base();
  for (const ir::ByteRange& range : kept) {
    const auto size = static_cast<size_t>(range.end - range.begin);
    std::memcpy(to, shared_->device.base() + range.begin, size);
    to += size;
  }
  const Nanoseconds copied = wallTime() - copyingBegin;
  if (ir::Error error = shared_->device.release(kDeviceArena)) return error;
  shared_->kept.emplace(KeptBytes{kept.vec(), std::move(*room)});
  return ArenaCopy{bytes, copied, wallTime() - begin};
}

ir::Expected<ArenaCopy> CpuDevice::restore(llvm::ArrayRef<uint8_t> pattern) {
  const Nanoseconds begin = wallTime();
  if (ir::Error error = shared_->device.restore(kDeviceArena)) return error;
  if (ir::Error error = fill(Space::kDevice, pattern)) return error;
  const Nanoseconds copyingBegin = wallTime();
  const KeptBytes& kept = *shared_->kept;
  const uint8_t* from = kept.bytes.base();
  for (const ir::ByteRange& range : kept.ranges) {
    const auto size = static_cast<size_t>(range.end - range.begin);
    std::memcpy(shared_->device.base() + range.begin, from, size);
    from += size;
  }
  const Nanoseconds copied = wallTime() - copyingBegin;
  const Bytes bytes = kept.bytes.bytes();
  shared_->kept.reset();
  return ArenaCopy{bytes, copied, wallTime() - begin};
}

ir::Error CpuDevice::synchronize() { return shared_->streams.drain(); }

llvm::MutableArrayRef<uint8_t> CpuDevice::arena(Space space) {
  MappedArena& own = shared_->arena(space);
  return {own.base(), static_cast<size_t>(own.bytes().value())};
}

std::optional<Bytes> CpuDevice::servedPeak() const {
  return std::max(shared_->allocator.servedPeak(), shared_->linkAllocator.servedPeak());
}

std::string CpuDevice::transport() const {
  return shared_->options.ranks == nullptr ? "" : "sockets";
}

int64_t CpuDevice::allocationsOutside() const {
  return shared_->allocations.passedOn.load() + shared_->linkAllocations.passedOn.load();
}

}  // namespace stowage::runtime
