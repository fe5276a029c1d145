// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_program.h"

#include <llvm/ADT/STLFunctionalExtras.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_activity.h"
#include "runtime/cuda/device_clock.h"
#include "runtime/cuda/injected_faults.h"
#include "runtime/cuda/nvtx_ranges.h"
#include "runtime/cuda/placed_workspaces.h"
#include "runtime/cuda/segment_graph.h"
#include "runtime/cuda/stopwatch.h"

namespace stowage::runtime {

using ir::Space;
using ir::Stream;

namespace {

/// Also knows in which step each was last recorded for the host and the streams to wait for.
class CudaEvents {
 public:
  static ir::Expected<CudaEvents> make(int32_t count) {
    CudaEvents events;
    events.recordedIn_.assign(static_cast<size_t>(2 * count), -1);
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
  CudaEvents(CudaEvents&& other) noexcept
      : events_(std::exchange(other.events_, {})), recordedIn_(std::move(other.recordedIn_)) {}
  CudaEvents& operator=(CudaEvents&&) = delete;
  ~CudaEvents() {
    for (cudaEvent_t event : events_) (void)cudaEventDestroy(event);
  }
  /// Steps take turns: this one's, and the one before.
  cudaEvent_t at(EventRef ref) const { return events_[placeOf(ref)]; }
  void noteRecorded(EventRef ref) { recordedIn_[placeOf(ref)] = ref.step; }
  /// False for one that was only recorded in a graph.
  bool isRecorded(EventRef ref) const { return recordedIn_[placeOf(ref)] == ref.step; }

 private:
  static size_t placeOf(EventRef ref) {
    return static_cast<size_t>(2 * ref.event + (ref.step % 2));
  }

  std::vector<cudaEvent_t> events_;
  std::vector<int64_t> recordedIn_;
};

struct HandedOut {
  const uint8_t* from;
  llvm::MutableArrayRef<uint8_t> to;
};

struct TakenIn {
  llvm::ArrayRef<uint8_t> from;
  uint8_t* to;
};

void takeIn(void* data) {
  const std::unique_ptr<TakenIn> arrival(static_cast<TakenIn*>(data));
  std::memcpy(arrival->to, arrival->from.data(), arrival->from.size());
}

void handOut(void* data) {
  const std::unique_ptr<HandedOut> delivery(static_cast<HandedOut*>(data));
  std::memcpy(delivery->to.data(), delivery->from, delivery->to.size());
}

class CudaProgram : public Program {
  /// Libraries are loaded and a graph is recorded in the steps before.
  static constexpr int64_t kSteady = 2;

 public:
  CudaProgram(const ProgramSource& source, CudaState& device, std::unique_ptr<Launcher> launcher,
              std::unique_ptr<HostOps> hostOps, CudaEvents events, CudaEvents segmentEnds)
      : source_(source),
        device_(device),
        launcher_(std::move(launcher)),
        hostOps_(std::move(hostOps)),
        events_(std::move(events)),
        segmentEnds_(std::move(segmentEnds)),
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
    return device_.check(cudaStreamWaitEvent(device_.raw(stream), events_.at(event), 0),
                         "waiting for an event");
  }
  ir::Error record(Stream stream, EventRef event) override {
    if (!isRecording()) events_.noteRecorded(event);
    return device_.check(cudaEventRecord(events_.at(event), device_.raw(stream)),
                         "recording an event");
  }

  ir::Error run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) override {
    const NvtxRanges::Scope range(ranges_, command);
    if (isOnHost(command)) return runOnHost(command, scalars);
    const c10::cuda::CUDAStreamGuard guard(device_.compute);
    faults_.delay(device_.compute.stream());
    faults_.allocate();
    const ServedThread served(device_.allocations);
    return timed(command, [&] {
      ir::Error error = launcher_->launch(command, scalars, device_.allocator, device_.allocations);
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
    auto handed = std::make_unique<HandedOut>(
        HandedOut{device_.at(Space::kHost, delivery.hostOffset), delivery.to});
    ir::Error error =
        device_.check(cudaLaunchHostFunc(device_.raw(delivery.stream), handOut, handed.get()),
                      "handing out an output");
    if (!error) (void)handed.release();
    return error;
  }

  ir::Error accept(const Arrival& arrival) override {
    auto taken = std::make_unique<TakenIn>(
        TakenIn{arrival.from, device_.at(Space::kHost, arrival.hostOffset)});
    ir::Error error = device_.check(
        cudaLaunchHostFunc(device_.raw(arrival.stream), takeIn, taken.get()), "taking in an input");
    if (!error) (void)taken.release();
    return error;
  }

  ir::Error waitOnHost(EventRef event) override {
    const cudaEvent_t awaited = events_.isRecorded(event) ? events_.at(event) : segmentEnd(event);
    return device_.check(cudaEventSynchronize(awaited), "a kernel or a copy of the step");
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
    return source_.schedule.command(command).stream == Stream::kHostCompute;
  }

  ir::Error runOnHost(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) {
    const cudaStream_t stream = device_.raw(Stream::kHostCompute);
    faults_.delay(stream);
    ir::CommandTimes* times = nullptr;
    if (timedStep_ != nullptr) times = &timedStep_->commands[command.index()].emplace();
    if (times != nullptr) times->launchBegin = ActivityTrace::now();
    ir::Error error = device_.check(hostOps_->enqueue(stream, command, scalars, times),
                                    "starting an update on the host");
    if (times != nullptr) times->launchEnd = ActivityTrace::now();
    return error;
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

  // The clock starts behind the first launch of the trace, which takes the driver long to launch.
  // The last stop counts.
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
  std::unique_ptr<Launcher> launcher_;
  std::unique_ptr<HostOps> hostOps_;
  CudaEvents events_;
  CudaEvents segmentEnds_;
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
  Stopwatch
      traced_;  // from behind the first timed launch to the last one's end, by the GPU's clock
  int64_t stepsToTime_ = 0;
  std::vector<ir::StepTimes> times_;    // complete when the trace is finished
  ir::StepTimes* timedStep_ = nullptr;  // of times_: the step that is enqueued, if it is timed
};

}  // namespace

ir::Expected<std::unique_ptr<Program>> makeCudaProgram(const ProgramSource& source,
                                                       CudaState& state,
                                                       std::unique_ptr<Launcher> launcher,
                                                       std::unique_ptr<HostOps> hostOps) {
  auto events = CudaEvents::make(source.eventCount);
  if (!events) return events.takeError();
  auto segmentEnds = CudaEvents::make(1);
  if (!segmentEnds) return segmentEnds.takeError();
  return std::make_unique<CudaProgram>(source, state, std::move(launcher), std::move(hostOps),
                                       std::move(*events), std::move(*segmentEnds));
}

}  // namespace stowage::runtime
