// SPDX-License-Identifier: Apache-2.0
//
// The small interface behind which a CPU, a CUDA and a fake device stand: arenas, streams, events,
// copy, launch. A Device owns the arenas and the streams; a Program is one plan made ready on it
// (prepared arguments, its events). Several programs may share a device and the state in its
// arenas, one after the other.
//
// Streams run what was enqueued to them in order, beside each other and beside the launch thread.
// An event belongs to a program and is counted in steps: "event 7 of step 3" is finished when all
// that its stream got before `record(stream, {7, 3})` is finished.
//
// Threads: every method is called from one thread, the launch thread, unless it says otherwise.
// Nothing blocks but waitOnHost, synchronize, read, write and load. Units: bytes; offsets count
// from the base of a space's arena.
//
// Failure: what goes wrong on a stream does not hang anything. The device remembers the first
// failure, skips all later launches and copies, keeps finishing events, and the failure comes back
// from the next call that blocks. A device that failed stays failed.
#ifndef STOWAGE_RUNTIME_EXECUTOR_DEVICE_H_
#define STOWAGE_RUNTIME_EXECUTOR_DEVICE_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/interval.h"
#include "ir/base/units.h"
#include "ir/costs/cost_table.h"
#include "ir/costs/step_times.h"
#include "ir/graph/graph.h"
#include "ir/schedule/disk_block.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "runtime/executor/scalar_feed.h"

namespace stowage::runtime {

/// A program's event in one step. Events are numbered densely from 0 by the executor.
struct EventRef {
  int32_t event = -1;
  int64_t step = 0;
};

/// What a device needs to make a plan ready. Graph and schedule outlive the program.
struct ProgramSource {
  const ir::Graph& graph;
  const ir::Schedule& schedule;  // level kSynced
  const ir::Target& target;
  const ir::NodeCosts* costs = nullptr;  // for the order of allocations and virtual times
  int32_t eventCount = 0;
};

/// Bytes of a host residency that go to the caller, as part of a stream.
struct Delivery {
  ir::Stream stream = ir::Stream::kDeviceToHost;
  int64_t hostOffset = 0;
  llvm::MutableArrayRef<uint8_t> to;  // stays valid until the step is over
};

/// Bytes of the caller's that go to a host residency, as part of a stream.
struct Arrival {
  ir::Stream stream = ir::Stream::kHostToDevice;
  int64_t hostOffset = 0;
  llvm::ArrayRef<uint8_t> from;  // stays valid until the step is over
};

/// A range of commands that a device may record once and launch as a whole (a CUDA graph).
struct Segment {
  ir::CommandId begin;
  ir::CommandId end;  // one past the last
};
enum class SegmentMode : uint8_t {
  kEnqueue,  // enqueue the commands one by one
  kRecord,   // the same, but for deliveries: they are recorded, and launched by endSegment
  kLaunch    // recorded before, with the same numbers: endSegment launches them, enqueue nothing
};

class Program {
 public:
  virtual ~Program() = default;

  /// Another program was loaded or used the device since this one's last step. Nothing is under
  /// way.
  virtual ir::Error beginTurn() { return ir::success(); }
  /// What is enqueued from now on belongs to this step. Steps of a program count up from 0.
  virtual ir::Error beginStep(int64_t step) = 0;
  /// Work enqueued to `stream` from now on starts after `event` is finished. Only events that were
  /// recorded before.
  virtual ir::Error wait(ir::Stream stream, EventRef event) = 0;
  /// Steps of an event rise.
  virtual ir::Error record(ir::Stream stream, EventRef event) = 0;
  /// Launches a run command on its stream. `scalars`: this step's values by ScalarId, copied before
  /// the call returns; empty as long as the feed was not joined.
  virtual ir::Error run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) = 0;
  /// Starts a copy command on its stream.
  virtual ir::Error copy(ir::CommandId command) = 0;
  /// Hands bytes to the caller, in the stream's order.
  virtual ir::Error deliver(const Delivery& delivery) = 0;
  /// Takes bytes from the caller, in the stream's order.
  virtual ir::Error accept(const Arrival& arrival) = 0;
  /// Blocks until the event is finished. Errors: the device's first failure.
  virtual ir::Error waitOnHost(EventRef event) = 0;

  /// The times of all commands are taken in the next `steps` steps; the step after those may wait.
  /// Errors: kUnsupported, kEnvironment when the machine does not let them be taken.
  virtual ir::Error takeTimes(int64_t steps);
  /// What was taken, by step; after everything enqueued is done.
  virtual ir::Expected<std::vector<ir::StepTimes>> takenTimes() {
    return std::vector<ir::StepTimes>();
  }

  /// Launch modes: called around the commands of a segment. The default enqueues one by one. Around
  /// what is recorded or launched all streams meet: it begins when everything enqueued before is
  /// done, and is done before anything enqueued after it begins; so waits across its ends are kept.
  /// Deliveries of a segment's outputs come after it, each followed by its event's record.
  /// `scalars` are those of all its launches, in every mode. What is recorded holds them, so that
  /// others make another record.
  virtual ir::Expected<SegmentMode> beginSegment(const Segment& segment,
                                                 llvm::ArrayRef<ScalarValue> scalars);
  virtual ir::Error endSegment(const Segment& segment);
  /// Instead of endSegment, for a step that failed within: nothing of the record is kept or
  /// launched.
  virtual void abandonSegment() {}
};

/// What a release or a restore of the device arena copied, and how long it took.
struct ArenaCopy {
  Bytes bytes;
  Nanoseconds copying;
  Nanoseconds whole;  // with what the system takes to give memory, or to take it back
};

class Device {
 public:
  virtual ~Device() = default;

  virtual Bytes arenaBytes(ir::Space space) const = 0;
  /// Makes a plan ready: everything that may fail or allocate happens here. Errors: kUnsupported,
  /// kPlanMismatch, kInvalidArgument naming the node.
  virtual ir::Expected<std::unique_ptr<Program>> load(const ProgramSource& source) = 0;
  /// Bytes from and to an arena: inputs, and the state at a boundary. No work that touches these
  /// bytes may be under way.
  virtual ir::Error write(ir::Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) = 0;
  virtual ir::Error read(ir::Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) = 0;
  /// An arena's bytes become `pattern`, over and over from its base. No work may be under way.
  virtual ir::Error fill(ir::Space space, llvm::ArrayRef<uint8_t> pattern);
  /// Bytes of the arenas that follow each other, without end or overlap, from one place to another.
  /// Blocks. No work that touches them may be under way.
  virtual ir::Error move(ir::Space from, int64_t fromOffset, ir::Space to, int64_t toOffset,
                         Bytes bytes);
  /// The host arena gets at least so many bytes; what it holds stays, and where. No work may be
  /// under way. Errors: kOutOfDeviceMemory.
  virtual ir::Error growHost(Bytes bytes);
  /// The device arena's memory goes back to the system, its addresses do not. `kept` (ascending,
  /// disjoint) is held in host memory. Until `restore` nothing may use that arena. No work may be
  /// under way. Errors: kUnsupported; kOutOfDeviceMemory when the host has no room for what is
  /// kept, and then nothing was released.
  virtual ir::Expected<ArenaCopy> release(llvm::ArrayRef<ir::ByteRange> kept);
  /// The arena gets memory again, at the same addresses: what was kept is back, all else has the
  /// pattern, as by `fill`. Errors: kOutOfDeviceMemory when the device has no memory free; nothing
  /// is lost then, and it can be tried again.
  virtual ir::Expected<ArenaCopy> restore(llvm::ArrayRef<uint8_t> pattern);
  /// Blocks until every stream is idle, after a failure as well. Errors: the device's first
  /// failure.
  virtual ir::Error synchronize() = 0;
  /// Bytes from the device arena's begin to the end of the highest thing that an op was given:
  /// operand, result, temporary or workspace, in whole alignment units. Nothing for a device whose
  /// ops allocate nothing.
  virtual std::optional<Bytes> servedPeak() const { return std::nullopt; }
  /// Allocations of the ops' on the device's threads, while they launch, that no plan
  /// served; on a GPU also what libtorch's own allocator gave to anybody since the third step
  /// began.
  virtual int64_t allocationsOutside() const { return 0; }
  /// Device memory beside the arena that the process took: contexts, kernels, libraries. Nothing
  /// for a device that cannot tell.
  virtual std::optional<Bytes> memoryOutside() const { return std::nullopt; }
  /// What collectives go by: "sockets", "copies between GPUs", "NCCL". Empty: there are no ranks.
  virtual std::string transport() const { return ""; }

  /// True if `user` is not the one that used the device last; it is from now on. For executors that
  /// share a device.
  bool takeTurn(const void* user) { return std::exchange(user_, user) != user; }

 private:
  const void* user_ = nullptr;
};

/// Bytes that a residency covers: the storage's bytes in whole alignment units (disk: whole
/// blocks).
Bytes residencyBytes(const ProgramSource& source, ir::ResidencyId residency);

Bytes totalBytes(llvm::ArrayRef<ir::ByteRange> ranges);

/// The direction of a copy command.
const ir::LinkRate& linkRate(const ir::LinkModel& links, ir::Stream stream);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_DEVICE_H_
