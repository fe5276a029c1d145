// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/prefetch_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace stowage::planner {

namespace {

int64_t floorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// Positions on the compute stream as times since the begin of the period, and back.
class Clock {
 public:
  explicit Clock(const CopySchedule& copies) : copies_(copies) {}

  ComputePosition positionAt(int64_t time) const {
    const int64_t turns = floorDiv(time, copies_.length);
    const int64_t within = time - turns * copies_.length;
    const auto& starts = copies_.launchStarts;
    const int64_t launch =
        std::upper_bound(starts.begin(), starts.end(), within) - starts.begin() - 1;
    return {launch + turns * launchCount(), within - starts[static_cast<size_t>(launch)]};
  }
  int64_t timeOf(const ComputePosition& position) const {
    const int64_t turns = floorDiv(position.launch, launchCount());
    const auto launch = static_cast<size_t>(position.launch - turns * launchCount());
    const int64_t start = copies_.launchStarts[launch];
    const int64_t end = launch + 1 < copies_.launchStarts.size() ? copies_.launchStarts[launch + 1]
                                                                 : copies_.length;
    return turns * copies_.length + start + std::min(position.offset, end - start);
  }

 private:
  int64_t launchCount() const { return static_cast<int64_t>(copies_.launchStarts.size()); }
  const CopySchedule& copies_;
};

int64_t prefetchTime(const GapTable& table, const Expansion& x, size_t prefetch) {
  const LiveRange& range = x.liveRanges[static_cast<size_t>(x.prefetches[prefetch].liveRange)];
  return copyTime(table.problem().costs.links.hostToDevice, table.bytes(range.storage));
}

// One engine that takes, of what is released, the earliest deadline. Two periods, of which the
// second is like all that follow.
std::vector<int64_t> serve(const GapTable& table, const Expansion& x,
                           const std::vector<int64_t>& releases, int64_t length) {
  using Job = std::pair<int64_t, size_t>;  // (key, prefetch), the second period's beyond the count
  const size_t count = x.prefetches.size();
  std::vector<Job> jobs;
  for (size_t i = 0; i < 2 * count; ++i) {
    jobs.push_back({releases[i % count] + (i < count ? 0 : length), i});
  }
  std::sort(jobs.begin(), jobs.end());
  std::priority_queue<Job, std::vector<Job>, std::greater<>> waiting;  // by deadline
  std::vector<int64_t> starts(count);
  int64_t now = jobs.front().first;
  for (size_t next = 0; next < jobs.size() || !waiting.empty();) {
    if (waiting.empty()) now = std::max(now, jobs[next].first);
    for (; next < jobs.size() && jobs[next].first <= now; ++next) {
      const size_t i = jobs[next].second;
      const int64_t period = i < count ? 0 : x.launchCount();
      waiting.push({x.prefetches[i % count].deadline + period, i});
    }
    const size_t i = waiting.top().second;
    waiting.pop();
    if (i >= count) starts[i - count] = now - length;
    now += prefetchTime(table, x, i % count);
  }
  return starts;
}

// The position of the first event at `tick`, in any period, that is not before `from`.
ComputePosition positionAfter(const EnqueueOrder& order, int64_t tick, const ComputePosition& from,
                              int64_t launchCount) {
  ComputePosition at = order.positions[static_cast<size_t>(tick % order.period)];
  at.launch += (floorDiv(from.launch - at.launch, launchCount) - 1) * launchCount;
  while (at < from) at.launch += launchCount;
  return at;
}

}  // namespace

// One after the other, from the last deadline backwards; twice, for those of the next step's begin
// may reach into this one's end. Each keeps its own duration in reserve.
void findLatestStarts(const GapTable& table, const Expansion& x, CopySchedule& copies) {
  const Clock clock(copies);
  std::vector<size_t> order;
  for (size_t i = 0; i < x.prefetches.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(x.prefetches[a].deadline, a) > std::pair(x.prefetches[b].deadline, b);
  });
  std::vector<int64_t> latest(x.prefetches.size());
  int64_t next = copies.length * 2;
  for (int round = 0; round < 2; ++round) {
    for (const size_t i : order) {
      const int64_t duration = prefetchTime(table, x, i);
      const int64_t due = copies.launchStarts[static_cast<size_t>(x.prefetches[i].deadline)];
      next = std::min(next, due - duration) - duration;
      latest[i] = next;
    }
    next += copies.length;
  }
  for (size_t i = 0; i < latest.size(); ++i) {
    copies.latest.push_back(std::max(copies.place[i], clock.positionAt(latest[i])));
  }
}

void enqueueInputsAfterBoundary(const Expansion& x, CopySchedule& copies) {
  const ComputePosition boundary{0, 0};
  ComputePosition first = boundary;
  for (size_t i = 0; i < x.prefetches.size(); ++i) {
    if (x.prefetches[i].ofThisStep) first = std::min(first, copies.in[i].start);
  }
  std::vector<std::pair<ComputePosition, size_t>> late;
  for (size_t i = 0; i < x.prefetches.size(); ++i) {
    const ComputePosition& start = copies.in[i].start;
    if (start >= first && start < boundary) late.push_back({start, i});
  }
  std::sort(late.begin(), late.end());
  int64_t rank = 0;
  for (const auto& [start, i] : late) {
    CopySpan& span = copies.in[i];
    span.start = {0, rank++};
    if (span.end <= span.start) span.end = {1, 0};
  }
}

bool putOff(const GapTable& table, const Expansion& x, const EnqueueOrder& order,
            const std::vector<int64_t>& delays, CopySchedule& copies) {
  bool isAny = false;
  for (size_t i = 0; i < x.prefetches.size(); ++i) {
    const auto liveRange = static_cast<size_t>(x.prefetches[i].liveRange);
    if (delays[liveRange] == 0) continue;
    // The event just before the new begin makes room.
    const int64_t tick = order.liveTicks[liveRange].begin + delays[liveRange] - 1;
    copies.place[i] = positionAfter(order, tick, copies.place[i], x.launchCount());
    isAny = true;
  }
  if (!isAny) return false;
  const Clock clock(copies);
  std::vector<int64_t> releases;
  for (const ComputePosition& place : copies.place) releases.push_back(clock.timeOf(place));
  const std::vector<int64_t> starts = serve(table, x, releases, copies.length);
  for (size_t i = 0; i < x.prefetches.size(); ++i) {
    CopySpan& span = copies.in[i];
    const ComputePosition last{x.prefetches[i].deadline - 1, INT64_MAX};
    span.start = std::max(copies.place[i], std::min(last, clock.positionAt(starts[i])));
    if (span.end <= span.start) span.end = {span.start.launch + 1, 0};
    copies.latest[i] = std::max(copies.latest[i], copies.place[i]);
  }
  enqueueInputsAfterBoundary(x, copies);
  return true;
}

}  // namespace stowage::planner
