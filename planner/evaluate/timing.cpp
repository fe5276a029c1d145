// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/timing.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "planner/evaluate/copy_schedule.h"

namespace stowage::planner {

namespace {

constexpr int kMostSteps = 64;

const ir::LinkRate& rateOf(const ir::LinkModel& links, ir::Stream stream) {
  switch (stream) {
    case ir::Stream::kDeviceToHost:
      return links.deviceToHost;
    case ir::Stream::kDiskRead:
      return links.diskRead;
    case ir::Stream::kDiskWrite:
      return links.diskWrite;
    default:
      return links.hostToDevice;
  }
}

// Max-plus simulation, a step at a time. The state that the next step sees are the ends of this
// one's commands; only differences count, so a period is found when two states differ by one number
// throughout.
class Timing {
 public:
  explicit Timing(const TimingInput& input) : in_(input) {
    for (size_t i = 0; i < in_.durations.size(); ++i) {
      for (const ir::CommandId id : in_.dependencies.prev[i]) watched_.push_back(id.index());
    }
    std::array<int64_t, ir::kStreamCount> last;
    last.fill(-1);
    for (size_t i = 0; i < in_.streams.size(); ++i) last[slot(i)] = static_cast<int64_t>(i);
    for (const int64_t command : last) {
      if (command >= 0) watched_.push_back(static_cast<size_t>(command));
    }
    std::sort(watched_.begin(), watched_.end());
    watched_.erase(std::unique(watched_.begin(), watched_.end()), watched_.end());
  }

  Timeline run() {
    for (int step = 0; step < kMostSteps; ++step) {
      simulateStep();
      if (step == 0) result_.firstStep = Nanoseconds(stepEnd());
      const int64_t base = stepEnd();
      ends_.push_back(base);
      std::vector<int64_t> state;
      state.reserve(watched_.size() + 2);
      for (const size_t command : watched_) state.push_back(base - end_[command]);
      if (hasLaunchOverhead()) {
        state.push_back(base - host_);
        state.push_back(base - (ends_.size() > 1 ? ends_[ends_.size() - 2] : 0));
      }
      const auto same = std::find(states_.begin(), states_.end(), state);
      if (same != states_.end()) {
        const auto first = static_cast<size_t>(same - states_.begin());
        return finish(base - ends_[first], ends_.size() - 1 - first);
      }
      states_.push_back(std::move(state));
    }
    const size_t half = ends_.size() / 2;
    return finish(ends_.back() - ends_[half - 1], ends_.size() - half);
  }

 private:
  size_t slot(size_t command) const { return static_cast<size_t>(in_.streams[command]); }

  bool hasLaunchOverhead() const { return !in_.launchOverheads.durations.empty(); }

  int64_t stepEnd() const {
    int64_t end = 0;
    for (const size_t command : watched_) end = std::max(end, end_[command]);
    return end;
  }

  void simulateStep() {
    const bool isFirst = end_.empty();
    if (isFirst) {
      end_.assign(in_.durations.size(), 0);
      start_.assign(in_.durations.size(), 0);
    }
    begin_ = isFirst ? 0 : stepBegin();
    const std::vector<int64_t> before = isFirst ? std::vector<int64_t>(end_.size(), 0) : end_;
    const size_t* meeting = in_.meetings.begin();
    if (hasLaunchOverhead()) beginEnqueue();
    for (size_t i = 0; i < in_.durations.size(); ++i) {
      if (meeting != in_.meetings.end() && *meeting == i) {
        streamFree_.fill(*std::max_element(streamFree_.begin(), streamFree_.end()));
        ++meeting;
      }
      int64_t start = streamFree_[slot(i)];
      for (const ir::CommandId id : in_.dependencies.wait[i]) {
        start = std::max(start, end_[id.index()]);
      }
      for (const ir::CommandId id : in_.dependencies.prev[i]) {
        start = std::max(start, before[id.index()]);
      }
      if (hasLaunchOverhead()) start = std::max(start, enqueue(i));
      start_[i] = start;
      end_[i] = streamFree_[slot(i)] = start + in_.durations[i];
    }
  }

  // The launch thread begins a step when the step before the last one is done.
  void beginEnqueue() {
    enqueued_.resize(in_.durations.size());
    if (ends_.size() > 1) host_ = std::max(host_, ends_[ends_.size() - 2]);
    scalarsAt_ = host_ + in_.launchOverheads.scalars;
    // The graph has them in it.
    if (in_.launchOverheads.firstUpdate < in_.launchOverheads.firstOutsideGraph) host_ = scalarsAt_;
  }

  int64_t enqueue(size_t i) {
    if (i == in_.launchOverheads.firstUpdate) host_ = std::max(host_, scalarsAt_);
    if (i >= in_.launchOverheads.firstOutsideGraph) host_ += in_.launchOverheads.durations[i];
    return enqueued_[i] = host_;
  }

  // A step begins when the compute stream of the step before is done, or, where streams meet, when
  // everything is.
  int64_t stepBegin() const {
    const bool meets = !in_.meetings.empty() && in_.meetings.front() == 0;
    return meets ? stepEnd() : streamFree_[static_cast<size_t>(ir::Stream::kCompute)];
  }

  Timeline finish(int64_t sum, size_t steps) {
    const auto count = static_cast<int64_t>(std::max<size_t>(steps, 1));
    result_.stepTime = Nanoseconds((sum + count - 1) / count);
    for (size_t i = 0; i < start_.size(); ++i) {
      result_.start.push_back(Nanoseconds(start_[i] - begin_));
      result_.end.push_back(Nanoseconds(end_[i] - begin_));
      result_.busy[slot(i)] += Nanoseconds(in_.durations[i]);
    }
    for (const int64_t moment : enqueued_) {
      result_.enqueued.push_back(Nanoseconds(moment - begin_));
    }
    return std::move(result_);
  }

  const TimingInput& in_;
  Timeline result_;
  std::vector<size_t> watched_;  // commands whose ends the next step sees
  std::vector<int64_t> start_, end_;
  std::array<int64_t, ir::kStreamCount> streamFree_{};
  int64_t begin_ = 0;
  int64_t host_ = 0;  // when the launch thread is free
  int64_t scalarsAt_ = 0;
  std::vector<int64_t> enqueued_;
  std::vector<int64_t> ends_;  // by simulated step
  std::vector<std::vector<int64_t>> states_;
};

struct TimedSchedule {
  std::vector<Nanoseconds> durations;  // by command
  std::vector<RateShare> shares;
  LaunchOverheads launchOverheads;
};

constexpr int kStretchRounds = 3;

/// Are there commands that slow each other down?
bool isShared(const TimingInput& input) {
  return llvm::any_of(input.shares, [&](const RateShare& share) {
    return llvm::is_contained(input.streams, share.stream) &&
           llvm::is_contained(input.streams, share.beside);
  });
}

Timeline timeSchedule(const ir::Graph& graph, const ir::Schedule& schedule, TimedSchedule timed) {
  Dependencies dependencies;
  std::vector<ir::Stream> streams;
  std::vector<int64_t> nanoseconds;
  for (const ir::Command& command : schedule.commands) {
    dependencies.wait.emplace_back(command.wait.begin(), command.wait.end());
    dependencies.prev.emplace_back(command.prev.begin(), command.prev.end());
    streams.push_back(command.stream);
  }
  for (const Nanoseconds duration : timed.durations) nanoseconds.push_back(duration.value());
  const std::vector<size_t> meetings =
      schedule.joined ? std::vector<size_t>{0}
                      : findMeetings(graph, schedule.graphMode, schedule.commands);
  return simulateTiming({.streams = streams,
                         .durations = nanoseconds,
                         .dependencies = dependencies,
                         .meetings = meetings,
                         .shares = timed.shares,
                         .launchOverheads = std::move(timed.launchOverheads)});
}

}  // namespace

Nanoseconds commandTime(const ir::Graph& graph, llvm::ArrayRef<ir::Residency> residencies,
                        const ir::Command& command, const ir::NodeCosts& costs,
                        int64_t alignBytes) {
  if (command.kind == ir::CommandKind::kRun) {
    const size_t node = command.node.index();
    if (graph.node(command.node).onHost) return costs.hostWork[node];
    return costs.isCollective(command.node) ? costs.collectiveWork[node] : costs.nodes[node].work;
  }
  const ir::Storage& storage = graph.storage(residencies[command.from.index()].storage);
  const Bytes bytes = roundUp(storage.bytes, alignBytes);
  return Nanoseconds(copyTime(rateOf(costs.links, command.stream), bytes.value()));
}

size_t findUpdate(const ir::Graph& graph, llvm::ArrayRef<ir::Command> commands) {
  const auto* found = llvm::find_if(commands, [&](const ir::Command& command) {
    return command.kind == ir::CommandKind::kRun && ir::endsGraph(graph.node(command.node));
  });
  return static_cast<size_t>(found - commands.begin());
}

std::vector<size_t> findMeetings(const ir::Graph& graph, ir::GraphMode mode,
                                 llvm::ArrayRef<ir::Command> commands) {
  if (mode == ir::GraphMode::kNone) return {};
  std::vector<size_t> meetings = {0};
  if (mode == ir::GraphMode::kWhole) return meetings;
  const size_t update = findUpdate(graph, commands);
  if (update > 0 && update < commands.size()) meetings.push_back(update);
  return meetings;
}

LaunchOverheads findLaunchOverheads(const ir::Graph& graph, ir::GraphMode mode,
                                    const ir::NodeCosts& costs,
                                    llvm::ArrayRef<ir::Command> commands) {
  LaunchOverheads launchOverheads;
  int64_t sum = costs.scalars.value();
  for (const ir::Command& command : commands) {
    const bool isRun = command.kind == ir::CommandKind::kRun;
    const Nanoseconds time = isRun ? costs.nodes[command.node.index()].launch : costs.links.launch;
    launchOverheads.durations.push_back(time.value());
    sum += time.value();
  }
  if (sum == 0) return {};
  launchOverheads.scalars = costs.scalars.value();
  launchOverheads.firstUpdate = findUpdate(graph, commands);
  launchOverheads.firstOutsideGraph = mode == ir::GraphMode::kNone ? 0
                                      : mode == ir::GraphMode::kNoUpdate
                                          ? launchOverheads.firstUpdate
                                          : commands.size();
  return launchOverheads;
}

Timeline simulateTiming(const TimingInput& input) {
  if (input.durations.empty()) return {};
  Timeline timeline = Timing(input).run();
  if (!isShared(input)) return timeline;
  for (int round = 0; round < kStretchRounds; ++round) {
    const std::vector<int64_t> durations =
        stretchDurations(input.streams, input.durations, input.shares, timeline);
    TimingInput stretched = input;
    stretched.durations = durations;
    timeline = Timing(stretched).run();
  }
  return timeline;
}

Timeline computeTimeline(const ir::Graph& graph, const ir::Schedule& schedule,
                         const ir::NodeCosts& costs, int64_t alignBytes) {
  return computeTimelineWithout(graph, schedule, costs, alignBytes,
                                [](ir::StorageId) { return false; });
}

Timeline computeTimelineWithout(const ir::Graph& graph, const ir::Schedule& schedule,
                                const ir::NodeCosts& costs, int64_t alignBytes,
                                llvm::function_ref<bool(ir::StorageId)> isFree) {
  TimedSchedule timed{.shares = findRateShares(costs.links)};
  for (const ir::Command& command : schedule.commands) {
    const bool isNothing =
        command.kind == ir::CommandKind::kCopy && isFree(schedule.residency(command.from).storage);
    timed.durations.push_back(
        isNothing ? Nanoseconds(0)
                  : commandTime(graph, schedule.residencies, command, costs, alignBytes));
  }
  timed.launchOverheads = findLaunchOverheads(graph, schedule.graphMode, costs, schedule.commands);
  return timeSchedule(graph, schedule, std::move(timed));
}

Timeline computeTimeline(const ir::Graph& graph, const ir::Schedule& schedule,
                         llvm::ArrayRef<Nanoseconds> durations) {
  return timeSchedule(graph, schedule, {.durations = durations.vec()});
}

}  // namespace stowage::planner
