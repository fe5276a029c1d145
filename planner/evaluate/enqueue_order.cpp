// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/enqueue_order.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/evaluate/launch_order.h"

namespace stowage::planner {

namespace {

// At equal times a node starts before anything that waits for it ends, and what ends makes room for
// what starts.
enum class EventKind : uint8_t {
  kLaunchStart,
  kLaunchEnd,
  kOutEnd,
  kHostEnd,
  kPrefetchEnd,
  kOutStart,
  kHostStart,
  kPlace,
  kPrefetchStart,
  kLatest
};

struct Event {
  int64_t launch;  // in [0, number of launches)
  int64_t offset;
  EventKind kind;
  int32_t index;
};

class Orderer {
 public:
  Orderer(const GapTable& table, const Expansion& expansion, const CopySchedule& copies)
      : table_(table), x_(expansion), copies_(copies), launchCount_(expansion.launchCount()) {}

  EnqueueOrder order() {
    collect();
    assignTicks();
    orderLaunches();
    orderLiveRanges();
    orderHosts();
    return std::move(result_);
  }

 private:
  void collect() {
    events_.reserve(
        2 * (x_.launches.size() + x_.offloads.size() + x_.prefetches.size() + x_.hostRuns.size()));
    const std::vector<ComputePosition> ends =
        findLaunchEnds(table_, x_, copies_.isBesideLink ? launchStarts() : std::vector<int64_t>());
    for (int32_t i = 0; i < x_.launchCount(); ++i) {
      events_.push_back({i, 0, EventKind::kLaunchStart, i});
      addPosition(ends[static_cast<size_t>(i)], EventKind::kLaunchEnd, static_cast<size_t>(i));
    }
    for (size_t i = 0; i < x_.offloads.size(); ++i) {
      addSpan(copies_.out[i], EventKind::kOutStart, EventKind::kOutEnd, i);
    }
    for (size_t i = 0; i < x_.hostRuns.size(); ++i) {
      addSpan(copies_.host[i], EventKind::kHostStart, EventKind::kHostEnd, i);
    }
    for (size_t i = 0; i < x_.prefetches.size(); ++i) {
      addSpan(copies_.in[i], EventKind::kPrefetchStart, EventKind::kPrefetchEnd, i);
      addPosition(copies_.place[i], EventKind::kPlace, i);
      addPosition(copies_.latest[i], EventKind::kLatest, i);
    }
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::tie(a.launch, a.offset, a.kind, a.index) <
             std::tie(b.launch, b.offset, b.kind, b.index);
    });
  }

  /// As simulated; without copies nothing was.
  std::vector<int64_t> launchStarts() const {
    if (!copies_.launchStarts.empty()) return copies_.launchStarts;
    std::vector<int64_t> starts(x_.launches.size(), 0);
    for (size_t i = 1; i + 1 < starts.size(); ++i) {
      starts[i + 1] = starts[i] + table_.nodeTime(x_.launches[i].node.index());
    }
    return starts;
  }

  void addSpan(const CopySpan& span, EventKind start, EventKind end, size_t index) {
    const auto id = static_cast<int32_t>(index);
    events_.push_back({wrap(span.start.launch), span.start.offset, start, id});
    events_.push_back({wrap(span.end.launch), span.end.offset, end, id});
  }

  void addPosition(const ComputePosition& position, EventKind kind, size_t index) {
    events_.push_back({wrap(position.launch), position.offset, kind, static_cast<int32_t>(index)});
  }

  int64_t wrap(int64_t launch) const {
    return ((launch % launchCount_) + launchCount_) % launchCount_;
  }
  int64_t turns(int64_t launch) const { return (launch - wrap(launch)) / launchCount_; }

  void assignTicks() {
    result_.period = static_cast<int64_t>(events_.size());
    launchStart_.resize(x_.launches.size());
    launchEnd_.resize(x_.launches.size());
    outStart_.resize(x_.offloads.size());
    outEnd_.resize(x_.offloads.size());
    hostStart_.resize(x_.hostRuns.size());
    hostEnd_.resize(x_.hostRuns.size());
    prefetchStart_.resize(x_.prefetches.size());
    prefetchEnd_.resize(x_.prefetches.size());
    place_.resize(x_.prefetches.size());
    latest_.resize(x_.prefetches.size());
    for (size_t tick = 0; tick < events_.size(); ++tick) {
      const Event& event = events_[tick];
      ticksOf(event.kind)[static_cast<size_t>(event.index)] = static_cast<int64_t>(tick);
      result_.positions.push_back({event.launch, event.offset});
      enqueue(event);
    }
    for (size_t i = 0; i < x_.offloads.size(); ++i) {
      outStart_[i] += turns(copies_.out[i].start.launch) * result_.period;
      outEnd_[i] += turns(copies_.out[i].end.launch) * result_.period;
    }
    for (size_t i = 0; i < x_.hostRuns.size(); ++i) {
      hostEnd_[i] += turns(copies_.host[i].end.launch) * result_.period;
    }
    for (size_t i = 0; i < x_.prefetches.size(); ++i) {
      prefetchStart_[i] += turns(copies_.in[i].start.launch) * result_.period;
      prefetchEnd_[i] += turns(copies_.in[i].end.launch) * result_.period;
      place_[i] += turns(copies_.place[i].launch) * result_.period;
      latest_[i] += turns(copies_.latest[i].launch) * result_.period;
    }
    result_.offloadStarts = outStart_;
  }

  std::vector<int64_t>& ticksOf(EventKind kind) {
    switch (kind) {
      case EventKind::kLaunchStart:
        return launchStart_;
      case EventKind::kLaunchEnd:
        return launchEnd_;
      case EventKind::kOutStart:
        return outStart_;
      case EventKind::kOutEnd:
        return outEnd_;
      case EventKind::kHostStart:
        return hostStart_;
      case EventKind::kHostEnd:
        return hostEnd_;
      case EventKind::kPrefetchStart:
        return prefetchStart_;
      case EventKind::kPlace:
        return place_;
      case EventKind::kLatest:
        return latest_;
      case EventKind::kPrefetchEnd:
        break;
    }
    return prefetchEnd_;
  }

  void enqueue(const Event& event) {
    EnqueuedCommand command{.index = event.index};
    if (event.kind == EventKind::kOutStart) {
      command.kind = EnqueuedCommand::Kind::kOffload;
    } else if (event.kind == EventKind::kPrefetchStart) {
      command.kind = EnqueuedCommand::Kind::kPrefetch;
    } else if (event.kind == EventKind::kHostStart) {
      command.kind = EnqueuedCommand::Kind::kHostRun;
    } else if (event.kind != EventKind::kLaunchStart || event.index == 0) {
      return;  // the step boundary runs nothing
    }
    result_.commands.push_back(command);
  }

  int64_t endOfLaunch(int64_t launch) const {
    return launchEnd_[static_cast<size_t>(wrap(launch))] + turns(launch) * result_.period;
  }

  void orderLaunches() {
    for (size_t i = 0; i < x_.launches.size(); ++i) {
      result_.launches.push_back({.begin = launchStart_[i], .end = launchEnd_[i] + 1});
    }
  }

  void orderLiveRanges() {
    std::vector<int64_t> gone(x_.liveRanges.size(), 0);  // end of the last offload, by live range
    for (size_t i = 0; i < x_.offloads.size(); ++i) {
      int64_t& end = gone[static_cast<size_t>(x_.offloads[i].liveRange)];
      end = std::max(end, std::max(outEnd_[i], outStart_[i]) + 1);
    }
    for (size_t i = 0; i < x_.liveRanges.size(); ++i) {
      const LiveRange& range = x_.liveRanges[i];
      if (range.always || range.begin < 0) {
        result_.liveTicks.push_back({.begin = 0, .end = range.always ? result_.period : 0});
        result_.latestBegins.push_back(0);
        continue;
      }
      const int64_t begin = range.prefetch >= 0 ? place_[static_cast<size_t>(range.prefetch)]
                                                : launchStart_[static_cast<size_t>(range.begin)];
      const int64_t latest =
          range.prefetch >= 0 ? latest_[static_cast<size_t>(range.prefetch)] : begin;
      result_.liveTicks.push_back(
          fold({.begin = begin, .end = std::max(endOfLaunch(range.end) + 1, gone[i])}));
      result_.latestBegins.push_back(result_.liveTicks.back().begin +
                                     std::max<int64_t>(0, latest - begin));
    }
  }

  // What goes on to disk has its places on the host later (disk_copies.*).
  // Bytes that leave the host again are there from the offload to the last prefetch, what a node on
  // the host reads until it is over; all others have a place of their own.
  void orderHosts() {
    result_.hosts.resize(x_.hostAtBoundary.size());
    const auto& storages = table_.problem().graph.storages();
    for (size_t i = 0; i < x_.hostAtBoundary.size(); ++i) {
      if (!x_.hostAtBoundary[i].needed || x_.onDisk[i]) continue;
      const bool isOwn = x_.hostAtBoundary[i].always || storages[i].persistent ||
                         storages[i].output || table_.isHostOnly(ir::StorageId(i));
      if (isOwn) result_.hosts[i] = {.begin = 0, .end = result_.period};
    }
    for (size_t i = 0; i < x_.offloads.size(); ++i)
      extendHost(x_.offloads[i].liveRange, outStart_[i]);
    for (size_t i = 0; i < x_.prefetches.size(); ++i)
      extendHost(x_.prefetches[i].liveRange, prefetchEnd_[i]);
    for (size_t i = 0; i < x_.hostRuns.size(); ++i) {
      for (const int32_t offload : x_.hostRuns[i].offloads) {
        extendHost(x_.offloads[static_cast<size_t>(offload)].liveRange,
                   std::max(hostStart_[i], hostEnd_[i]));
      }
    }
    // The host may be steps behind: then the place is taken all the time.
    for (ir::TickRange& range : result_.hosts) {
      if (range.end - range.begin > result_.period) range = {.begin = 0, .end = result_.period};
    }
  }

  void extendHost(int32_t liveRange, int64_t tick) {
    const size_t storage = x_.liveRanges[static_cast<size_t>(liveRange)].storage.index();
    if (x_.onDisk[storage]) return;
    ir::TickRange& range = result_.hosts[storage];
    if (range.begin == 0 && range.end == result_.period) return;
    if (range.isEmpty()) range = {.begin = tick, .end = tick + 1};
    range.begin = std::min(range.begin, tick);
    range.end = std::max(range.end, tick + 1);
  }

  ir::TickRange fold(ir::TickRange range) const {
    const int64_t back = ((range.begin % result_.period) + result_.period) % result_.period;
    const int64_t length = std::min(range.end - range.begin, result_.period);
    return {.begin = back, .end = back + length};
  }

  const GapTable& table_;
  const Expansion& x_;
  const CopySchedule& copies_;
  int64_t launchCount_;
  EnqueueOrder result_;
  std::vector<Event> events_;
  std::vector<int64_t> launchStart_, launchEnd_, outStart_, outEnd_, prefetchStart_, prefetchEnd_;
  std::vector<int64_t> hostStart_, hostEnd_;
  std::vector<int64_t> place_;   // by prefetch: first tick at which its live range has its bytes
  std::vector<int64_t> latest_;  // by prefetch: until when that may be put off
};

}  // namespace

EnqueueOrder findEnqueueOrder(const GapTable& table, const Expansion& expansion,
                              const CopySchedule& copies) {
  return Orderer(table, expansion, copies).order();
}

}  // namespace stowage::planner
