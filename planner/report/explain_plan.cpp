// SPDX-License-Identifier: Apache-2.0
#include "planner/report/explain_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/graph/liveness.h"
#include "planner/evaluate/copy_schedule.h"
#include "planner/report/residency_spans.h"

namespace stowage::planner {

namespace {

constexpr size_t kMostHolders = 10;
constexpr size_t kMostPlaces = 10;

bool isCompute(const ir::Command& command) { return command.stream == ir::Stream::kCompute; }

int64_t roundedBytes(const ExplainInput& input, ir::StorageId storage) {
  return roundUp(input.graph.storage(storage).bytes, input.alignBytes).value();
}

// --- what is on the device when ------------------------------------------------------------------

void explainPeak(const ExplainInput& input, PlanExplanation& result) {
  const ResidencySpans spans(input.graph, input.schedule, input.alignBytes);
  const std::vector<GroupBytes> bytes = spans.bytesByCommand();
  size_t peak = bytes.size();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!isCompute(input.schedule.commands[i])) continue;
    if (peak == bytes.size() || sumOf(bytes[i]) > sumOf(bytes[peak])) peak = i;
  }
  result.arenaPeak = input.schedule.predicted.peakBytes;
  if (peak == bytes.size()) return;
  const ir::Command& command = input.schedule.commands[peak];
  result.peakNode = command.node;
  result.peakBytes = Bytes(sumOf(bytes[peak]));
  for (const ir::ReservedRegion& region : input.schedule.reserved) {
    result.peakBytes += roundUp(region.bytes, input.alignBytes);
    result.holders.push_back({region.what + " (reserved)", region.bytes});
  }
  if (command.temp.bytes > Bytes(0)) {
    result.holders.push_back({"temporaries of the node", command.temp.bytes});
  }
  for (size_t r = 0; r < input.schedule.residencies.size(); ++r) {
    if (!spans.isThere(r, static_cast<int64_t>(peak))) continue;
    if (ResidencySpans::isTaken(command, r)) continue;
    const ir::StorageId storage = input.schedule.residencies[r].storage;
    result.holders.push_back(
        {input.graph.storage(storage).name, Bytes(roundedBytes(input, storage))});
  }
  std::sort(result.holders.begin(), result.holders.end(),
            [](const ir::Infeasible::Holder& a, const ir::Infeasible::Holder& b) {
              return a.bytes != b.bytes ? a.bytes > b.bytes : a.storage < b.storage;
            });
  if (result.holders.size() > kMostHolders) result.holders.resize(kMostHolders);
}

// --- where compute waits -------------------------------------------------------------------------

// The command that ended last among those that `index` waits for; the number of commands: none.
size_t lastAwaited(const ir::Schedule& schedule, const Timeline& timeline, size_t index) {
  size_t last = schedule.commands.size();
  Nanoseconds latest(INT64_MIN);
  const auto consider = [&](ir::CommandId id, Nanoseconds shift) {
    if (timeline.end[id.index()] - shift <= latest) return;
    latest = timeline.end[id.index()] - shift;
    last = id.index();
  };
  for (const ir::CommandId id : schedule.commands[index].wait) consider(id, {});
  for (const ir::CommandId id : schedule.commands[index].prev) consider(id, timeline.stepTime);
  return last;
}

/// Did the copy begin at the moment when a disk was done?
bool waitedForDisk(const ir::Schedule& schedule, const Timeline& timeline, size_t copy) {
  const size_t last = lastAwaited(schedule, timeline, copy);
  if (last == schedule.commands.size()) return false;
  const ir::Stream stream = schedule.commands[last].stream;
  if (stream != ir::Stream::kDiskRead && stream != ir::Stream::kDiskWrite) return false;
  const Nanoseconds between = timeline.end[last] - timeline.start[copy];
  return between == Nanoseconds(0) || between == timeline.stepTime;
}

std::vector<StallPlace> findStalls(const ExplainInput& input, const Timeline& timeline) {
  const ir::Schedule& schedule = input.schedule;
  std::vector<StallPlace> stalls;
  Nanoseconds free;
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    if (!isCompute(schedule.commands[i])) continue;
    if (!timeline.enqueued.empty()) free = std::max(free, timeline.enqueued[i]);
    const Nanoseconds waited = timeline.start[i] - free;
    free = timeline.end[i];
    if (waited <= Nanoseconds(0)) continue;
    const size_t last = lastAwaited(schedule, timeline, i);
    StallPlace stall{.node = schedule.commands[i].node, .storage = {}, .time = waited};
    if (last < schedule.commands.size()) {
      const ir::Command& cause = schedule.commands[last];
      if (cause.kind == ir::CommandKind::kCopy) {
        stall.storage = schedule.residency(cause.from).storage;
        stall.isOut = cause.stream == ir::Stream::kDeviceToHost;
        stall.isByDisk = waitedForDisk(schedule, timeline, last);
      } else if (cause.stream == ir::Stream::kCollective) {
        stall.storage = schedule.residency(cause.out.front()).storage;
        stall.isRanks = true;
      }
    }
    stalls.push_back(stall);
  }
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const StallPlace& a, const StallPlace& b) { return a.time > b.time; });
  return stalls;
}

/// How long compute waits for the launch thread.
Nanoseconds launchWaits(const ir::Schedule& schedule, const Timeline& timeline) {
  Nanoseconds sum;
  Nanoseconds free;
  for (size_t i = 0; i < timeline.enqueued.size(); ++i) {
    if (!isCompute(schedule.commands[i])) continue;
    sum += std::max(timeline.enqueued[i] - free, Nanoseconds(0));
    free = timeline.end[i];
  }
  return sum;
}

Timeline timelineOf(const ExplainInput& input) {
  return computeTimeline(input.graph, input.schedule, input.costs, input.alignBytes);
}

/// "" of what has to come in or is delivered.
llvm::StringRef kindOf(ir::Role role) {
  switch (role) {
    case ir::Role::kInput:
    case ir::Role::kOutput:
      return "";
    case ir::Role::kState:
    case ir::Role::kMaster:
    case ir::Role::kStepCounter:
      return "optimizer states";
    case ir::Role::kGradient:
      return "gradients";
    case ir::Role::kActivation:
      return "activations";
    default:
      return "weights";
  }
}

std::vector<CopiedGroup> findCopied(const ExplainInput& input, Nanoseconds stepTime) {
  std::map<std::string, std::set<ir::StorageId>> byKind;
  for (const ir::Command& command : input.schedule.commands) {
    if (command.kind != ir::CommandKind::kCopy) continue;
    const ir::StorageId storage = input.schedule.residency(command.from).storage;
    const llvm::StringRef kind = kindOf(input.graph.storage(storage).role);
    if (!kind.empty()) byKind[kind.str()].insert(storage);
  }
  std::vector<CopiedGroup> groups;
  for (const auto& [kind, storages] : byKind) {
    CopiedGroup group{.kind = kind, .storages = static_cast<int64_t>(storages.size())};
    for (const ir::StorageId storage : storages) {
      group.bytes += Bytes(roundedBytes(input, storage));
    }
    const Timeline without = computeTimelineWithout(
        input.graph, input.schedule, input.costs, input.alignBytes,
        [&, &members = storages](ir::StorageId id) { return members.count(id) > 0; });
    group.atMost = stepTime - without.stepTime;
    if (group.atMost > Nanoseconds(0)) groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.atMost > b.atMost; });
  return groups;
}

// --- one storage ---------------------------------------------------------------------------------

class StoryTeller {
 public:
  StoryTeller(const ExplainInput& input, ir::StorageId storage)
      : in_(input),
        storage_(storage),
        touches_(ir::computeLives(input.graph)[storage.index()].touches) {
    before_.push_back(0);
    for (size_t i = 0; i < in_.costs.nodes.size(); ++i) {
      before_.push_back(before_.back() + in_.costs.time(ir::NodeId(i)).value());
    }
  }

  std::vector<GapStory> tell() const {
    std::vector<GapStory> gaps;
    const auto nodes = static_cast<int64_t>(in_.graph.nodes().size());
    for (size_t k = 0; k < touches_.size(); ++k) {
      const bool isLast = k + 1 == touches_.size();
      if (isLast && !in_.graph.storage(storage_).persistent) break;
      const ir::Touch& next = isLast ? touches_.front() : touches_[k + 1];
      const int64_t end = next.position + (isLast ? nodes : 0);
      if (end <= touches_[k].position + 1 || next.whole) continue;
      gaps.push_back(tellGap(touches_[k].position, end));
    }
    return gaps;
  }

 private:
  GapStory tellGap(int64_t begin, int64_t end) const {
    const auto nodes = static_cast<int64_t>(in_.graph.nodes().size());
    GapStory story{.begin = begin,
                   .end = end,
                   .before = ir::NodeId(static_cast<size_t>(begin)),
                   .after = ir::NodeId(static_cast<size_t>(end % nodes)),
                   .nextStep = end >= nodes,
                   .why = "fits"};
    for (const ir::DecisionRow& row : in_.schedule.decisions) {
      if (row.storage != storage_ || row.gapBegin != begin) continue;
      story.action = row.action;
      story.why = row.why;
    }
    story.away = timeBetween(begin + 1, end);
    const bool isDirty = in_.graph.lastVersion(storage_) > 0;
    const int64_t bytes = roundedBytes(in_, storage_);
    if (isDirty)
      story.copyTime += Nanoseconds(planner::copyTime(in_.costs.links.deviceToHost, bytes));
    story.copyTime += Nanoseconds(planner::copyTime(in_.costs.links.hostToDevice, bytes));
    if (story.action != ir::GapAction::kRecompute) return story;
    story.copyTime = Nanoseconds();
    for (const ir::Touch& touch : touches_) {
      if (!touch.writes || touch.position > begin) continue;
      story.recomputeTime += in_.costs.time(ir::NodeId(static_cast<size_t>(touch.position)));
    }
    return story;
  }

  Nanoseconds timeBetween(int64_t from, int64_t to) const {
    const auto nodes = static_cast<int64_t>(in_.graph.nodes().size());
    const auto at = [&](int64_t position) {
      return before_[static_cast<size_t>(position % nodes)] + position / nodes * before_.back();
    };
    return Nanoseconds(at(to) - at(from));
  }

  const ExplainInput& in_;
  ir::StorageId storage_;
  std::vector<ir::Touch> touches_;
  std::vector<int64_t> before_;  // node times before a position
};

}  // namespace

PlanExplanation explainPlan(const ExplainInput& input) {
  PlanExplanation result;
  explainPeak(input, result);
  const Timeline timeline = timelineOf(input);
  result.stepTime = timeline.stepTime;
  result.outBusy = timeline.busy[static_cast<size_t>(ir::Stream::kDeviceToHost)];
  result.inBusy = timeline.busy[static_cast<size_t>(ir::Stream::kHostToDevice)];
  result.hostBusy = timeline.busy[static_cast<size_t>(ir::Stream::kHostCompute)];
  result.ranksBusy = timeline.busy[static_cast<size_t>(ir::Stream::kCollective)];
  result.diskReadBusy = timeline.busy[static_cast<size_t>(ir::Stream::kDiskRead)];
  result.diskWriteBusy = timeline.busy[static_cast<size_t>(ir::Stream::kDiskWrite)];
  for (const ir::Command& command : input.schedule.commands) {
    const bool isRecompute = command.recompute > 0 && isCompute(command);
    if (isRecompute) result.recomputeTime += input.costs.nodes[command.node.index()].work;
  }
  result.stalls = findStalls(input, timeline);
  for (const StallPlace& stall : result.stalls) result.waiting += stall.time;
  result.launchWaits = launchWaits(input.schedule, timeline);
  result.copied = findCopied(input, result.stepTime);
  if (result.stalls.size() > kMostPlaces) result.stalls.resize(kMostPlaces);
  return result;
}

ir::Expected<StorageStory> explainStorage(const ExplainInput& input, const std::string& name) {
  const auto& storages = input.graph.storages();
  const auto at = std::find_if(storages.begin(), storages.end(),
                               [&](const ir::Storage& storage) { return storage.name == name; });
  if (at == storages.end()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument, "found no storage '" + name + "'");
  }
  const ir::StorageId id(static_cast<size_t>(at - storages.begin()));
  StorageStory story{.storage = id, .bytes = Bytes(roundedBytes(input, id)), .gaps = {}};
  story.gaps = StoryTeller(input, id).tell();
  for (const StallPlace& stall : findStalls(input, timelineOf(input))) {
    if (stall.storage == id) story.waiting += stall.time;
  }
  return story;
}

}  // namespace stowage::planner
