// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_program.h"

#include <llvm/ADT/STLFunctionalExtras.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_activity.h"
#include "runtime/cuda/cuda_events.h"
#include "runtime/cuda/device_clock.h"
#include "runtime/cuda/hand_over.h"
#include "runtime/cuda/host_streams.h"
#include "runtime/cuda/injected_faults.h"
#include "runtime/cuda/nvtx_ranges.h"
#include "runtime/cuda/placed_workspaces.h"
#include "runtime/cuda/run_ahead.h"
#include "runtime/cuda/segment_graph.h"
#include "runtime/cuda/stopwatch.h"

namespace stowage::runtime {

using ir::Space;
using ir::Stream;

namespace {

class CudaProgram : public Program {
  /// Libraries are loaded and a graph is recorded in the steps before.
  static constexpr int64_t kSteady = 2;

 public:
  struct Events {
    CudaEvents own;
    CudaEvents segmentEnds;
    RunAhead ahead;
  };
  struct Host {
    std::unique_ptr<HostOps> ops;
    std::unique_ptr<HostStreams> streams;
  };
  CudaProgram(const ProgramSource& source, CudaState& device, OpLaunchers launchers, Host host,
              Events events)
      : source_(source),
        device_(device),
        launchers_(std::move(launchers)),
        hostOps_(std::move(host.ops)),
        hostStreams_(std::move(host.streams)),
        events_(std::move(events.own)),
        segmentEnds_(std::move(events.segmentEnds)),
        ahead_(std::move(events.ahead)),
        ranges_(source) {
    const std::vector<ir::Command>& commands = source_.schedule.commands;
    for (size_t i = 0; i < commands.size(); ++i) {
      if (commands[i].stream != Stream::kCompute) continue;
      lastLaunch_ = ir::CommandId(i);
      if (!firstLaunch_.isValid()) firstLaunch_ = lastLaunch_;
    }
  }

  ir::Error beginTurn() override {
    return device_.fail(placeWorkspaces(device_, source_.schedule));
  }

  ir::Error beginStep(int64_t step) override {
    step_ = step;
    faults_.beginStep();
    ranges_.beginStep(step);
    if (step == kSteady && !device_.givenAway) device_.givenAway = CudaState::countGivenAway();
    timedStep_ = nullptr;
    if (stepsToTime_ <= 0) return finishTrace();
    --stepsToTime_;
    times_.push_back({.step = step, .commands = {}});
    timedStep_ = &times_.back();
    timedStep_->commands.resize(source_.schedule.commands.size());
    return ir::success();
  }

  ir::Error takeTimes(int64_t steps) override {
    if (source_.schedule.graphMode != ir::GraphMode::kNone) {
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           std::string("the plan launches CUDA graphs (mode '") +
                               ir::graphModeName(source_.schedule.graphMode) +
                               "'), in which the times of single commands are not taken");
    }
    ir::Expected<std::unique_ptr<ActivityTrace>> trace = ActivityTrace::start();
    if (!trace) return trace.takeError();
    trace_ = std::move(*trace);
    stepsToTime_ = steps;
    return ir::success();
  }
  ir::Expected<std::vector<ir::StepTimes>> takenTimes() override {
    if (ir::Error error = finishTrace()) return error;
    return times_;
  }

  // Around a graph all streams meet: what was only recorded in one, or before one that is recorded
  // now, is done.
  ir::Error wait(Stream stream, EventRef event) override {
    const bool isOutside = isRecording() && event.step != step_;
    if (isOutside || !(isRecording() || events_.isRecorded(event))) return ir::success();
    if (faults_.dropsWait()) return ir::success();
    const bool isHosts = isOnHost(event);
    if (isHostStream(stream)) {
      isHosts ? hostStreams_->wait(stream, event) : hostStreams_->wait(stream, events_, event);
      return ir::success();
    }
    if (isHosts) {
      return device_.check(hostStreams_->wait(device_.raw(stream), event),
                           "waiting for work on the host");
    }
    return device_.check(cudaStreamWaitEvent(device_.raw(stream), events_.at(event), 0),
                         "waiting for an event");
  }
  ir::Error record(Stream stream, EventRef event) override {
    if (!isRecording()) events_.noteRecorded(event);
    if (isHostStream(stream)) {
      hostStreams_->record(stream, event);
      return ir::success();
    }
    return device_.check(cudaEventRecord(events_.at(event), device_.raw(stream)),
                         "recording an event");
  }

  ir::Error run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) override {
    const NvtxRanges::Scope range(ranges_, command);
    if (isOnHost(command)) return runOnHost(command, scalars);
    const bool isOnLink = source_.schedule.command(command).stream == Stream::kCollective;
    const c10::cuda::CUDAStreamGuard guard(isOnLink ? device_.link : device_.compute);
    faults_.delay(isOnLink ? device_.link.stream() : device_.compute.stream());
    faults_.allocate();
    const ServedThread served(device_.allocations);
    const TensorRanksScope ranks(device_.ranks.get());
    if (ir::Error error = ahead_.noteLaunch(device_)) return error;
    return timed(command, [&] {
      Launcher& launcher = isOnLink ? *launchers_.link : *launchers_.compute;
      ir::Error error = launcher.launch(command, scalars, device_.allocator, device_.allocations);
      if (isRecording()) error = checkRecorded(command, std::move(error));
      return device_.fail(std::move(error));
    });
  }

  ir::Error copy(ir::CommandId id) override {
    const NvtxRanges::Scope range(ranges_, id);
    const ir::Command& command = source_.schedule.command(id);
    const ir::Residency& from = source_.schedule.residency(command.from);
    const ir::Residency& to = source_.schedule.residency(command.to);
    const auto bytes = static_cast<size_t>(source_.graph.storage(from.storage).bytes.value());
    if (isHostStream(command.stream)) return copyOnHost(id);
    faults_.delay(device_.raw(command.stream));
    return timed(id, [&] {
      if (faults_.failsCopy()) return device_.check(cudaErrorECCUncorrectable, "starting a copy");
      return device_.check(
          cudaMemcpyAsync(device_.at(to.space, to.offset), device_.at(from.space, from.offset),
                          bytes,
                          command.stream == Stream::kDeviceToHost ? cudaMemcpyDeviceToHost
                                                                  : cudaMemcpyHostToDevice,
                          device_.raw(command.stream)),
          "starting a copy");
    });
  }

  ir::Error deliver(const Delivery& delivery) override {
    const uint8_t* from = device_.at(Space::kHost, delivery.hostOffset);
    return device_.check(handOver(device_.raw(delivery.stream), from, delivery.to),
                         "handing out an output");
  }

  ir::Error accept(const Arrival& arrival) override {
    uint8_t* to = device_.at(Space::kHost, arrival.hostOffset);
    return device_.check(
        handOver(device_.raw(arrival.stream), arrival.from.data(), {to, arrival.from.size()}),
        "taking in an input");
  }

  ir::Error waitOnHost(EventRef event) override {
    if (isOnHost(event)) {
      const auto query = [&] { return hostStreams_->query(event); };
      if (device_.ranks) return device_.fail(device_.ranks->wait(query, "work on the host"));
      hostStreams_->waitOnHost(event);
      return device_.fail(ir::success());
    }
    const cudaEvent_t awaited = events_.isRecorded(event) ? events_.at(event) : segmentEnd(event);
    return device_.waitFor(awaited, "a kernel or a copy of the step");
  }

  // The first step runs as it is: libraries are loaded and workspaces made. The second is recorded,
  // and every one whose numbers are not those of the last record.
  ir::Expected<SegmentMode> beginSegment(const Segment& /*segment*/,
                                         llvm::ArrayRef<ScalarValue> scalars) override {
    if (graph_ && scalars == llvm::ArrayRef<ScalarValue>(recordedScalars_)) {
      return SegmentMode::kLaunch;
    }
    if (!isWarm_) {
      isWarm_ = true;
      return SegmentMode::kEnqueue;
    }
    recordedScalars_ = scalars.vec();
    // The step before may still run it; the one that it replaces here is done.
    graphBefore_ = std::move(graph_);
    ir::Expected<std::unique_ptr<SegmentGraph>> graph = SegmentGraph::beginRecording(device_);
    if (!graph) return graph.takeError();
    graph_ = std::move(*graph);
    return SegmentMode::kRecord;
  }
  ir::Error endSegment(const Segment& /*segment*/) override {
    if (!graph_) return ir::success();
    if (graph_->isRecording()) {
      if (ir::Error error = device_.fail(graph_->endRecording())) return error;
    }
    if (ir::Error error = device_.fail(graph_->launch())) return error;
    return device_.check(
        cudaEventRecord(segmentEnds_.at({0, step_}), device_.raw(Stream::kCompute)),
        "recording an event");
  }
  void abandonSegment() override {
    if (isRecording()) graph_.reset();
  }

 private:
  bool isOnHost(ir::CommandId command) const {
    return isHostStream(source_.schedule.command(command).stream);
  }
  bool isOnHost(EventRef event) const { return hostStreams_ && hostStreams_->isOwn(event); }

  ir::Error runOnHost(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) {
    return pushOnHost(command, [this, command, values = scalars.vec()] {
      return hostOps_->run(command, values);
    });
  }

  ir::Error copyOnHost(ir::CommandId id) {
    return pushOnHost(id, [this, id] {
      const ir::Command& command = source_.schedule.command(id);
      const ir::Residency& from = source_.schedule.residency(command.from);
      const ir::Residency& to = source_.schedule.residency(command.to);
      const int64_t bytes = source_.graph.storage(from.storage).bytes.value();
      if (from.space == Space::kDisk) {
        return device_.disk->read(from.offset, device_.at(to.space, to.offset), bytes);
      }
      return device_.disk->write(to.offset, device_.at(from.space, from.offset), bytes);
    });
  }

  ir::Error pushOnHost(ir::CommandId command, std::function<ir::Error()> work) {
    const Stream stream = source_.schedule.command(command).stream;
    if (timedStep_ == nullptr) {
      hostStreams_->push(stream, std::move(work));
      return ir::success();
    }
    ir::CommandTimes& times = timedStep_->commands[command.index()].emplace();
    times.launchBegin = ActivityTrace::now();
    hostStreams_->push(stream, [&times, work = std::move(work)] {
      times.begin = ActivityTrace::now();
      ir::Error error = work();
      times.end = ActivityTrace::now();
      return error;
    });
    times.launchEnd = ActivityTrace::now();
    return ir::success();
  }

  bool isRecording() const { return graph_ && graph_->isRecording(); }
  cudaEvent_t segmentEnd(EventRef event) const { return segmentEnds_.at({0, event.step}); }

  // Some calls that a graph cannot hold end the recording without an error of their own, and some
  // ops do other things while they are recorded.
  ir::Error checkRecorded(ir::CommandId command, ir::Error error) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t asked = cudaStreamIsCapturing(device_.compute.stream(), &status);
    if (!error && asked == cudaSuccess && status == cudaStreamCaptureStatusActive) {
      return ir::success();
    }
    ir::PlanError cannot(ir::ErrorCode::kUnsupported,
                         source_.graph.describeNode(source_.schedule.command(command).node) +
                             " cannot be part of a CUDA graph; plan with --launch none");
    if (error) cannot.note(ir::takePayload(std::move(error)).text());
    return ir::makeError(std::move(cannot));
  }

  ir::Error timed(ir::CommandId command, llvm::function_ref<ir::Error()> enqueue) {
    if (timedStep_ == nullptr) return enqueue();
    ir::CommandTimes& times = timedStep_->commands[command.index()].emplace();
    times.launchBegin = ActivityTrace::now();
    trace_->beginWork(numberOf(times_.size() - 1, command.index()));
    ir::Error error = enqueue();
    trace_->endWork();
    times.launchEnd = ActivityTrace::now();
    mark(command);
    return error;
  }

  // From behind the first launch of a trace, which takes the driver long. The last stop counts.
  void mark(ir::CommandId command) {
    if (times_.size() == 1 && command == firstLaunch_) traced_.start(device_.compute.stream());
    if (command == lastLaunch_) traced_.stop(device_.compute.stream());
  }

  // What the clock ran for, by the driver's clock.
  ActivitySpan betweenMarks(const std::map<uint64_t, ActivitySpan>& spans) const {
    std::optional<ActivitySpan> between;
    for (size_t step = 0; step < times_.size(); ++step) {
      for (size_t i = 0; i < source_.schedule.commands.size(); ++i) {
        if (source_.schedule.commands[i].stream != Stream::kCompute) continue;
        const auto span = spans.find(numberOf(step, i));
        if (span == spans.end()) continue;
        const bool isFirst = step == 0 && ir::CommandId(i) == firstLaunch_;
        if (!between) between = {isFirst ? span->second.end : span->second.begin, span->second.end};
        between->end = std::max(between->end, span->second.end);
      }
    }
    return between.value_or(ActivitySpan{});
  }

  // From 1: CUPTI has a zero of its own.
  uint64_t numberOf(size_t timedStep, size_t command) const {
    return 1 + timedStep * source_.schedule.commands.size() + command;
  }

  ir::Error finishTrace() {
    if (!trace_) return ir::success();
    const std::unique_ptr<ActivityTrace> trace = std::move(trace_);
    if (ir::Error error = device_.synchronize()) return error;
    if (ir::Error error = device_.check(cudaDeviceSynchronize(), "the timed steps")) return error;
    ir::Expected<std::map<uint64_t, ActivitySpan>> spans = trace->finish();
    if (!spans) return spans.takeError();
    const bool isMarked = firstLaunch_.isValid() && !times_.empty();
    ir::Expected<Nanoseconds> traced = isMarked ? traced_.read() : Nanoseconds(0);
    if (!traced) return traced.takeError();
    const DeviceClock clock(betweenMarks(*spans), *traced, *trace);
    for (size_t step = 0; step < times_.size(); ++step) {
      for (size_t i = 0; i < times_[step].commands.size(); ++i) {
        std::optional<ir::CommandTimes>& times = times_[step].commands[i];
        if (!times) continue;
        if (isOnHost(ir::CommandId(i))) {  // by this clock from the first
          *times = {trace->sinceBegin(times->launchBegin), trace->sinceBegin(times->launchEnd),
                    trace->sinceBegin(times->begin), trace->sinceBegin(times->end)};
          continue;
        }
        const auto span = spans->find(numberOf(step, i));
        if (span == spans->end()) {
          times.reset();  // it launched nothing
          continue;
        }
        *times = {trace->sinceBegin(times->launchBegin), trace->sinceBegin(times->launchEnd),
                  clock.sinceBegin(span->second.begin), clock.sinceBegin(span->second.end)};
      }
    }
    return ir::success();
  }

  ProgramSource source_;
  CudaState& device_;
  OpLaunchers launchers_;
  std::unique_ptr<HostOps> hostOps_;          // null: nothing runs on the host
  std::unique_ptr<HostStreams> hostStreams_;  // null: none
  CudaEvents events_;
  CudaEvents segmentEnds_;
  RunAhead ahead_;
  NvtxRanges ranges_;
  InjectedFaults faults_;
  std::unique_ptr<SegmentGraph> graph_;  // from the second step on, when the plan asks for one
  std::unique_ptr<SegmentGraph> graphBefore_;
  std::vector<ScalarValue> recordedScalars_;  // of graph_
  bool isWarm_ = false;
  int64_t step_ = 0;
  std::unique_ptr<ActivityTrace> trace_;
  ir::CommandId firstLaunch_;
  ir::CommandId lastLaunch_;
  Stopwatch traced_;  // from behind the first timed launch to the last one's end
  int64_t stepsToTime_ = 0;
  std::vector<ir::StepTimes> times_;    // complete when the trace is finished
  ir::StepTimes* timedStep_ = nullptr;  // of times_: the step that is enqueued, if it is timed
};

}  // namespace

ir::Expected<std::unique_ptr<Program>> makeCudaProgram(const ProgramSource& source,
                                                       CudaState& state, OpLaunchers launchers,
                                                       std::unique_ptr<HostOps> hostOps) {
  auto events = CudaEvents::make(source.eventCount);
  if (!events) return events.takeError();
  auto segmentEnds = CudaEvents::make(1);
  if (!segmentEnds) return segmentEnds.takeError();
  auto ahead = RunAhead::make();
  if (!ahead) return ahead.takeError();
  auto hostStreams = HostStreams::make(source, state.threads);
  if (!hostStreams) return hostStreams.takeError();
  return std::make_unique<CudaProgram>(
      source, state, std::move(launchers),
      CudaProgram::Host{std::move(hostOps), std::move(*hostStreams)},
      CudaProgram::Events{std::move(*events), std::move(*segmentEnds), std::move(*ahead)});
}

}  // namespace stowage::runtime
