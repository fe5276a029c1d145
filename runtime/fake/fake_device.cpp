// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/fake_device.h"

#include <algorithm>
#include <utility>

#include "runtime/executor/failure_latch.h"
#include "runtime/fake/fake_memory.h"
#include "runtime/fake/freed_ranges.h"
#include "runtime/fake/virtual_streams.h"

namespace stowage::runtime {

namespace {

// What a launch lasts when nothing is known of its cost.
constexpr Nanoseconds kUnknownTime{1000};

}  // namespace

/// What the device shares with its programs.
struct FakeDevice::Shared {
  FakeMemory memory;
  VirtualStreams streams;
  FakeDelays delays;
  FailureLatch failure;
  std::vector<StepSpan> spans;
  std::vector<FakeLaunch> launches;
  int32_t programs = 0;

  Shared(llvm::ArrayRef<ir::Arena> arenas, FakeDelays given)
      : memory(arenas), delays(std::move(given)) {}

  Nanoseconds delayOf(ir::CommandId command, int64_t step) const {
    Nanoseconds delay;
    if (const auto found = delays.commands.find(command.raw()); found != delays.commands.end()) {
      delay += found->second;
    }
    if (delays.most.value() == 0) return delay;
    FakeGenerator draw{delays.seed * 1000003 + static_cast<uint64_t>(step), command.index()};
    const uint64_t bits = drawFakeBits(draw);
    // Half of them start at once: delays all over hide nothing but their mean.
    if (bits % 2 == 0) return delay;
    return delay + Nanoseconds(static_cast<int64_t>((bits >> 1) %
                                                    static_cast<uint64_t>(delays.most.value())));
  }
};

namespace {

class FakeProgram : public Program {
 public:
  FakeProgram(const ProgramSource& source, FakeDevice::Shared& shared)
      : shared_(shared),
        state_(source, shared.memory),
        freed_(source.graph, source.schedule),
        firstOutsideGraph_(findFirstOutsideGraph(source.graph, source.schedule)),
        number_(shared.programs++) {}

  ir::Error beginStep(int64_t step) override {
    step_ = step;
    span_ = shared_.spans.size();
    shared_.spans.push_back({Nanoseconds(INT64_MAX), Nanoseconds(0)});
    return ir::success();
  }

  ir::Error wait(ir::Stream stream, EventRef event) override {
    shared_.streams.pushWait(stream, {number_, event.event, event.step});
    return ir::success();
  }

  ir::Error record(ir::Stream stream, EventRef event) override {
    shared_.streams.pushRecord(stream, {number_, event.event, event.step});
    return ir::success();
  }

  ir::Error run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) override {
    return push(command, scalars.vec());
  }

  ir::Error copy(ir::CommandId command) override { return push(command, {}); }

  ir::Error deliver(const Delivery& delivery) override {
    shared_.streams.pushAction(delivery.stream, [this, delivery] {
      const auto from = state_.memory.range(ir::Space::kHost, delivery.hostOffset,
                                            Bytes(static_cast<int64_t>(delivery.to.size())));
      std::copy(from.begin(), from.end(), delivery.to.begin());
    });
    return ir::success();
  }

  ir::Error accept(const Arrival& arrival) override {
    const auto begin = [](Nanoseconds /*now*/) {};
    const auto end = [this, arrival](Nanoseconds /*now*/) {
      const auto to = state_.memory.range(ir::Space::kHost, arrival.hostOffset,
                                          Bytes(static_cast<int64_t>(arrival.from.size())));
      std::copy(arrival.from.begin(), arrival.from.end(), to.begin());
    };
    // As a command behind all others.
    const ir::CommandId last(state_.source.schedule.commands.size());
    shared_.streams.pushWork(arrival.stream,
                             {begin, end, Nanoseconds(0), shared_.delayOf(last, step_)});
    return ir::success();
  }

  ir::Error waitOnHost(EventRef event) override {
    if (ir::Error error = shared_.streams.runUntil({number_, event.event, event.step})) {
      return error;
    }
    return shared_.failure.get();
  }

 private:
  ir::Error push(ir::CommandId id, std::vector<ScalarValue> scalars) {
    auto work = std::make_shared<FakeWork>(state_, id, std::move(scalars));
    const auto begin = [this, work, span = span_](Nanoseconds now) {
      StepSpan& own = shared_.spans[span];
      own.begin = std::min(own.begin, now);
      if (!shared_.failure.isSet()) work->begin();
    };
    const auto end = [this, work, id, step = step_, span = span_](Nanoseconds now) {
      shared_.spans[span].end = std::max(shared_.spans[span].end, now);
      if (shared_.failure.isSet()) return;
      finish(id, step, *work);
    };
    shared_.streams.spend(launchOverheadOf(id));
    shared_.streams.pushWork(state_.source.schedule.command(id).stream,
                             {begin, end, durationOf(id), shared_.delayOf(id, step_)});
    return ir::success();
  }

  // Freed before the results are written: they may lie where the operands were.
  void finish(ir::CommandId id, int64_t step, FakeWork& work) {
    ir::Error changed = work.check();
    for (const ir::ResidencyId residency : freed_.finish(id, step)) {
      const auto place = state_.bytesOf(residency);
      std::fill(place.begin(), place.end(), kFreedByte);
    }
    if (changed) return shared_.failure.set(std::move(changed));
    if (ir::Error overlap = work.write()) return shared_.failure.set(std::move(overlap));
    if (state_.source.schedule.command(id).kind == ir::CommandKind::kRun) {
      shared_.launches.push_back({id, step, work.hashes()});
    }
  }

  static size_t findFirstOutsideGraph(const ir::Graph& graph, const ir::Schedule& schedule) {
    if (schedule.graphMode == ir::GraphMode::kNone) return 0;
    size_t i = 0;
    for (; i < schedule.commands.size(); ++i) {
      const ir::Command& command = schedule.commands[i];
      const bool mayEnd =
          schedule.graphMode == ir::GraphMode::kNoUpdate && command.kind == ir::CommandKind::kRun;
      if (mayEnd && ir::endsGraph(graph.node(command.node))) break;
    }
    return i;
  }

  Nanoseconds launchOverheadOf(ir::CommandId id) const {
    const ProgramSource& source = state_.source;
    if (source.costs == nullptr || id.index() < firstOutsideGraph_) return {};
    const ir::Command& command = source.schedule.command(id);
    if (command.kind != ir::CommandKind::kRun) return source.costs->links.launch;
    return source.costs->nodes[command.node.index()].launch;
  }

  Nanoseconds durationOf(ir::CommandId id) const {
    const ProgramSource& source = state_.source;
    const ir::Command& command = source.schedule.command(id);
    if (source.costs == nullptr) return kUnknownTime;
    if (command.kind == ir::CommandKind::kRun) {
      const size_t node = command.node.index();
      const bool isCollective = source.costs->isCollective(command.node);
      return isCollective ? source.costs->collectiveWork[node] : source.costs->nodes[node].work;
    }
    const ir::LinkRate& rate = linkRate(source.costs->links, command.stream);
    return rate.latency + transferTime(residencyBytes(source, command.from), rate.bandwidth);
  }

  FakeDevice::Shared& shared_;
  FakeProgramState state_;
  FreedRanges freed_;
  size_t firstOutsideGraph_;  // commands before are a graph
  int32_t number_;
  int64_t step_ = 0;
  size_t span_ = 0;
};

}  // namespace

FakeDevice::FakeDevice(llvm::ArrayRef<ir::Arena> arenas, FakeDelays delays)
    : shared_(std::make_unique<Shared>(arenas, std::move(delays))) {}

FakeDevice::~FakeDevice() = default;

Bytes FakeDevice::arenaBytes(ir::Space space) const {
  return Bytes(static_cast<int64_t>(shared_->memory.arenas[static_cast<size_t>(space)].size()));
}

ir::Expected<std::unique_ptr<Program>> FakeDevice::load(const ProgramSource& source) {
  return std::make_unique<FakeProgram>(source, *shared_);
}

ir::Error FakeDevice::write(ir::Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) {
  const auto to = shared_->memory.range(space, offset, Bytes(static_cast<int64_t>(bytes.size())));
  std::copy(bytes.begin(), bytes.end(), to.begin());
  return ir::success();
}

ir::Error FakeDevice::read(ir::Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) {
  const auto from = shared_->memory.range(space, offset, Bytes(static_cast<int64_t>(bytes.size())));
  std::copy(from.begin(), from.end(), bytes.begin());
  return ir::success();
}

ir::Error FakeDevice::synchronize() {
  if (ir::Error error = shared_->streams.runAll()) return error;
  return shared_->failure.get();
}

const std::vector<FakeLaunch>& FakeDevice::launches() const { return shared_->launches; }

const std::vector<StepSpan>& FakeDevice::stepSpans() const { return shared_->spans; }

}  // namespace stowage::runtime
