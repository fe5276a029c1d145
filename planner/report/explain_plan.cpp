// SPDX-License-Identifier: Apache-2.0
#include "planner/report/explain_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/graph/liveness.h"
#include "planner/evaluate/copy_schedule.h"

namespace stowage::planner {

namespace {

constexpr size_t kMostHolders = 10;
constexpr size_t kMostPlaces = 10;

bool isCompute(const ir::Command& command) { return command.stream == ir::Stream::kCompute; }

int64_t roundedBytes(const ExplainInput& input, ir::StorageId storage) {
  return roundUp(input.graph.storage(storage).bytes, input.alignBytes).value();
}

// --- what is on the device when
// -------------------------------------------------------------------

// A residency holds bytes from the command that defines it to its last use. What is used before it
// is defined came over the boundary.
struct Span {
  int64_t define = -1;
  int64_t last = -1;
  int64_t lastBefore = -1;  // last use before it is defined in the step
  bool isCrossing = false;  // valid at the boundary
};

class Occupancy {
 public:
  explicit Occupancy(const ExplainInput& input) : in_(input) {
    spans_.resize(in_.schedule.residencies.size());
    const auto& commands = in_.schedule.commands;
    for (size_t i = 0; i < commands.size(); ++i) note(commands[i], static_cast<int64_t>(i));
    for (const ir::BoundaryEntry& entry : in_.schedule.boundary) {
      for (const ir::ResidencyId id : entry.at) spans_[id.index()].isCrossing = true;
    }
  }

  bool isThere(size_t residency, int64_t command) const {
    const Span& span = spans_[residency];
    if (in_.schedule.residencies[residency].space != ir::Space::kDevice) return false;
    const bool crosses = span.isCrossing || span.lastBefore >= 0;
    if (!crosses) return span.define >= 0 && span.define <= command && command <= span.last;
    if (span.define < 0) return true;
    return command >= span.define || command <= span.lastBefore;
  }

  // The bytes of a node that lands on an operand are counted once.
  int64_t bytesAt(size_t command) const {
    const ir::Command& run = in_.schedule.commands[command];
    int64_t bytes = run.temp.bytes.value();
    for (size_t r = 0; r < spans_.size(); ++r) {
      if (!isThere(r, static_cast<int64_t>(command)) || isTaken(run, r)) continue;
      bytes += roundedBytes(in_, in_.schedule.residencies[r].storage);
    }
    return bytes;
  }
  static bool isTaken(const ir::Command& run, size_t residency) {
    return run.takes.isValid() && run.takes.index() == residency;
  }

  // Bytes at every command, by differences: a look at all residencies each time would be slow.
  std::vector<int64_t> bytesByCommand() const {
    const size_t count = in_.schedule.commands.size();
    std::vector<int64_t> change(count + 1, 0);
    const auto add = [&](int64_t from, int64_t to, int64_t bytes) {
      if (from > to) return;
      change[static_cast<size_t>(from)] += bytes;
      change[static_cast<size_t>(to) + 1] -= bytes;
    };
    for (size_t r = 0; r < spans_.size(); ++r) {
      const Span& span = spans_[r];
      const ir::Residency& residency = in_.schedule.residencies[r];
      if (residency.space != ir::Space::kDevice) continue;
      const int64_t bytes = roundedBytes(in_, residency.storage);
      const bool crosses = span.isCrossing || span.lastBefore >= 0;
      const auto end = static_cast<int64_t>(count) - 1;
      if (crosses && span.define < 0) add(0, end, bytes);
      if (crosses && span.define >= 0) add(span.define, end, bytes);
      if (crosses && span.define >= 0) add(0, std::min(span.lastBefore, span.define - 1), bytes);
      if (!crosses && span.define >= 0) add(span.define, span.last, bytes);
    }
    std::vector<int64_t> result(count, 0);
    int64_t held = 0;
    for (size_t i = 0; i < count; ++i) {
      held += change[i];
      const ir::Command& command = in_.schedule.commands[i];
      result[i] = held + command.temp.bytes.value();
      if (!command.takes.isValid()) continue;
      const ir::Residency& taken = in_.schedule.residency(command.takes);
      result[i] -= roundedBytes(in_, taken.storage);
    }
    return result;
  }

 private:
  void note(const ir::Command& command, int64_t at) {
    if (command.kind == ir::CommandKind::kCopy) {
      use(command.from, at);
      define(command.to, at);
      return;
    }
    for (const ir::ResidencyId id : command.in) use(id, at);
    for (const ir::ResidencyId id : command.out) {
      if (llvm::is_contained(command.in, id)) {
        use(id, at);
      } else {
        define(id, at);
      }
    }
  }
  void use(ir::ResidencyId id, int64_t at) {
    Span& span = spans_[id.index()];
    if (span.define < 0) span.lastBefore = at;
    span.last = at;
  }
  void define(ir::ResidencyId id, int64_t at) {
    Span& span = spans_[id.index()];
    if (span.define < 0) span.define = at;
    span.last = at;
  }

  const ExplainInput& in_;
  std::vector<Span> spans_;
};

void explainPeak(const ExplainInput& input, PlanExplanation& result) {
  const Occupancy occupancy(input);
  const std::vector<int64_t> bytes = occupancy.bytesByCommand();
  size_t peak = bytes.size();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!isCompute(input.schedule.commands[i])) continue;
    if (peak == bytes.size() || bytes[i] > bytes[peak]) peak = i;
  }
  result.height = input.schedule.predicted.peakBytes;
  if (peak == bytes.size()) return;
  const ir::Command& command = input.schedule.commands[peak];
  result.peakNode = command.node;
  result.peakBytes = Bytes(bytes[peak]);
  for (const ir::ReservedRegion& region : input.schedule.reserved) {
    result.peakBytes += roundUp(region.bytes, input.alignBytes);
    result.holders.push_back({region.what + " (reserved)", region.bytes});
  }
  if (command.temp.bytes > Bytes(0)) {
    result.holders.push_back({"temporaries of the node", command.temp.bytes});
  }
  for (size_t r = 0; r < input.schedule.residencies.size(); ++r) {
    if (!occupancy.isThere(r, static_cast<int64_t>(peak))) continue;
    if (Occupancy::isTaken(command, r)) continue;
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

// --- where compute waits
// --------------------------------------------------------------------------

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

std::vector<StallPlace> findStalls(const ExplainInput& input, const Timeline& timeline) {
  const ir::Schedule& schedule = input.schedule;
  std::vector<StallPlace> stalls;
  Nanoseconds free;
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    if (!isCompute(schedule.commands[i])) continue;
    if (!timeline.handedOver.empty()) free = std::max(free, timeline.handedOver[i]);
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
      }
    }
    stalls.push_back(stall);
  }
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const StallPlace& a, const StallPlace& b) { return a.time > b.time; });
  return stalls;
}

/// What compute waits until it is handed over what it could do.
Nanoseconds issueWaits(const ir::Schedule& schedule, const Timeline& timeline) {
  Nanoseconds sum;
  Nanoseconds free;
  for (size_t i = 0; i < timeline.handedOver.size(); ++i) {
    if (!isCompute(schedule.commands[i])) continue;
    sum += std::max(timeline.handedOver[i] - free, Nanoseconds(0));
    free = timeline.end[i];
  }
  return sum;
}

Timeline timelineOf(const ExplainInput& input) {
  return computeTimeline(input.graph, input.schedule, input.costs, input.alignBytes);
}

std::vector<Remedy> findRemedies(const ExplainInput& input, llvm::ArrayRef<StallPlace> stalls) {
  std::map<ir::StorageId, Nanoseconds> byStorage;
  for (const StallPlace& stall : stalls) {
    if (stall.storage.isValid()) byStorage[stall.storage] += stall.time;
  }
  std::vector<Remedy> remedies;
  for (const auto& [storage, time] : byStorage) {
    if (input.graph.storage(storage).role == ir::Role::kInput) continue;  // it has to come in
    remedies.push_back({storage, Bytes(roundedBytes(input, storage)), time});
  }
  std::stable_sort(remedies.begin(), remedies.end(),
                   [](const Remedy& a, const Remedy& b) { return a.atMost > b.atMost; });
  if (remedies.size() > kMostPlaces) remedies.resize(kMostPlaces);
  return remedies;
}

// --- one storage
// ----------------------------------------------------------------------------------

class StoryTeller {
 public:
  StoryTeller(const ExplainInput& input, ir::StorageId storage)
      : in_(input),
        storage_(storage),
        touches_(ir::computeLives(input.graph)[storage.index()].touches) {
    before_.push_back(0);
    for (const ir::OpCost& cost : in_.costs.nodes) {
      before_.push_back(before_.back() + cost.time.value());
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
      story.recomputeTime += in_.costs.nodes[static_cast<size_t>(touch.position)].time;
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
  for (const ir::Command& command : input.schedule.commands) {
    if (command.clone > 0) result.recomputeTime += input.costs.work(command.node);
  }
  result.stalls = findStalls(input, timeline);
  for (const StallPlace& stall : result.stalls) result.waiting += stall.time;
  result.issueWaits = issueWaits(input.schedule, timeline);
  result.remedies = findRemedies(input, result.stalls);
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
