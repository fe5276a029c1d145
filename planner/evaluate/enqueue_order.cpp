// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/issue_order.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stowage::planner {

namespace {

// At equal times a node starts before anything that waits for it ends, and what ends makes room for
// what starts.
enum class EventKind : uint8_t {
  kRunStart,
  kRunEnd,
  kOutEnd,
  kPrefetchEnd,
  kOutStart,
  kPlace,
  kPrefetchStart,
  kLatest
};

struct Event {
  int64_t step;  // in [0, number of steps)
  int64_t offset;
  EventKind kind;
  int32_t index;
};

class Orderer {
 public:
  Orderer(const GapTable& table, const Expansion& expansion, const CopySchedule& copies)
      : table_(table), x_(expansion), copies_(copies), steps_(expansion.stepCount()) {}

  IssueOrder order() {
    collect();
    assignTicks();
    orderRuns();
    orderStays();
    orderHosts();
    return std::move(result_);
  }

 private:
  void collect() {
    events_.reserve(2 * (x_.steps.size() + x_.offloads.size() + x_.prefetches.size()));
    for (int32_t i = 0; i < x_.stepCount(); ++i) {
      const ir::NodeId node = x_.steps[static_cast<size_t>(i)].node;
      events_.push_back({i, 0, EventKind::kRunStart, i});
      events_.push_back(
          {i, node.isValid() ? table_.nodeTime(node.index()) : 0, EventKind::kRunEnd, i});
    }
    for (size_t i = 0; i < x_.offloads.size(); ++i) {
      addSpan(copies_.out[i], EventKind::kOutStart, EventKind::kOutEnd, i);
    }
    for (size_t i = 0; i < x_.prefetches.size(); ++i) {
      addSpan(copies_.in[i], EventKind::kPrefetchStart, EventKind::kPrefetchEnd, i);
      addMoment(copies_.place[i], EventKind::kPlace, i);
      addMoment(copies_.latest[i], EventKind::kLatest, i);
    }
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::tie(a.step, a.offset, a.kind, a.index) <
             std::tie(b.step, b.offset, b.kind, b.index);
    });
  }

  void addSpan(const CopySpan& span, EventKind start, EventKind end, size_t index) {
    const auto id = static_cast<int32_t>(index);
    events_.push_back({wrap(span.start.step), span.start.offset, start, id});
    events_.push_back({wrap(span.end.step), span.end.offset, end, id});
  }

  void addMoment(const Moment& moment, EventKind kind, size_t index) {
    events_.push_back({wrap(moment.step), moment.offset, kind, static_cast<int32_t>(index)});
  }

  int64_t wrap(int64_t step) const { return ((step % steps_) + steps_) % steps_; }
  int64_t turns(int64_t step) const { return (step - wrap(step)) / steps_; }

  void assignTicks() {
    result_.period = static_cast<int64_t>(events_.size());
    runStart_.resize(x_.steps.size());
    runEnd_.resize(x_.steps.size());
    outStart_.resize(x_.offloads.size());
    outEnd_.resize(x_.offloads.size());
    prefetchStart_.resize(x_.prefetches.size());
    prefetchEnd_.resize(x_.prefetches.size());
    place_.resize(x_.prefetches.size());
    latest_.resize(x_.prefetches.size());
    for (size_t tick = 0; tick < events_.size(); ++tick) {
      const Event& event = events_[tick];
      ticksOf(event.kind)[static_cast<size_t>(event.index)] = static_cast<int64_t>(tick);
      result_.moments.push_back({event.step, event.offset});
      issue(event, static_cast<int64_t>(tick));
    }
    for (size_t i = 0; i < x_.offloads.size(); ++i) {
      outStart_[i] += turns(copies_.out[i].start.step) * result_.period;
      outEnd_[i] += turns(copies_.out[i].end.step) * result_.period;
    }
    for (size_t i = 0; i < x_.prefetches.size(); ++i) {
      prefetchStart_[i] += turns(copies_.in[i].start.step) * result_.period;
      prefetchEnd_[i] += turns(copies_.in[i].end.step) * result_.period;
      place_[i] += turns(copies_.place[i].step) * result_.period;
      latest_[i] += turns(copies_.latest[i].step) * result_.period;
    }
    result_.offloadStarts = outStart_;
  }

  std::vector<int64_t>& ticksOf(EventKind kind) {
    switch (kind) {
      case EventKind::kRunStart:
        return runStart_;
      case EventKind::kRunEnd:
        return runEnd_;
      case EventKind::kOutStart:
        return outStart_;
      case EventKind::kOutEnd:
        return outEnd_;
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

  void issue(const Event& event, int64_t tick) {
    Issue issued{.index = event.index};
    if (event.kind == EventKind::kOutStart) {
      issued.kind = Issue::Kind::kOffload;
    } else if (event.kind == EventKind::kPrefetchStart) {
      issued.kind = Issue::Kind::kPrefetch;
    } else if (event.kind != EventKind::kRunStart || event.index == 0) {
      return;  // the step boundary runs nothing
    }
    result_.issues.push_back(issued);
    result_.issueTick.push_back(tick);
  }

  int64_t endOfStep(int64_t step) const {
    return runEnd_[static_cast<size_t>(wrap(step))] + turns(step) * result_.period;
  }

  void orderRuns() {
    for (size_t i = 0; i < x_.steps.size(); ++i) {
      result_.runs.push_back({.begin = runStart_[i], .end = runEnd_[i] + 1});
    }
  }

  void orderStays() {
    std::vector<int64_t> gone(x_.stays.size(), 0);  // end of the last offload, by stay
    for (size_t i = 0; i < x_.offloads.size(); ++i) {
      int64_t& end = gone[static_cast<size_t>(x_.offloads[i].stay)];
      end = std::max(end, std::max(outEnd_[i], outStart_[i]) + 1);
    }
    for (size_t i = 0; i < x_.stays.size(); ++i) {
      const Stay& stay = x_.stays[i];
      if (stay.always || stay.begin < 0) {
        result_.stays.push_back({.begin = 0, .end = stay.always ? result_.period : 0});
        result_.latestBegins.push_back(0);
        continue;
      }
      const int64_t begin = stay.prefetch >= 0 ? place_[static_cast<size_t>(stay.prefetch)]
                                               : runStart_[static_cast<size_t>(stay.begin)];
      const int64_t latest =
          stay.prefetch >= 0 ? latest_[static_cast<size_t>(stay.prefetch)] : begin;
      result_.stays.push_back(
          fold({.begin = begin, .end = std::max(endOfStep(stay.end) + 1, gone[i])}));
      result_.latestBegins.push_back(result_.stays.back().begin +
                                     std::max<int64_t>(0, latest - begin));
    }
  }

  // Bytes that leave the host again are there from the offload to the last prefetch; all others
  // have a place of their own.
  void orderHosts() {
    result_.hosts.resize(x_.hostAtBoundary.size());
    const auto& storages = table_.problem().graph.storages();
    for (size_t i = 0; i < x_.hostAtBoundary.size(); ++i) {
      if (!x_.hostAtBoundary[i].needed) continue;
      const bool isOwn = x_.hostAtBoundary[i].always || storages[i].persistent ||
                         storages[i].output || table_.isHostOnly(ir::StorageId(i));
      if (isOwn) result_.hosts[i] = {.begin = 0, .end = result_.period};
    }
    for (size_t i = 0; i < x_.offloads.size(); ++i) extendHost(x_.offloads[i].stay, outStart_[i]);
    for (size_t i = 0; i < x_.prefetches.size(); ++i)
      extendHost(x_.prefetches[i].stay, prefetchEnd_[i]);
  }

  void extendHost(int32_t stay, int64_t tick) {
    ir::TickRange& range = result_.hosts[x_.stays[static_cast<size_t>(stay)].storage.index()];
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
  int64_t steps_;
  IssueOrder result_;
  std::vector<Event> events_;
  std::vector<int64_t> runStart_, runEnd_, outStart_, outEnd_, prefetchStart_, prefetchEnd_;
  std::vector<int64_t> place_;   // by prefetch: from when on its stay has its bytes
  std::vector<int64_t> latest_;  // by prefetch: until when that may be put off
};

}  // namespace

IssueOrder orderIssues(const GapTable& table, const Expansion& expansion,
                       const CopySchedule& copies) {
  return Orderer(table, expansion, copies).order();
}

}  // namespace stowage::planner
