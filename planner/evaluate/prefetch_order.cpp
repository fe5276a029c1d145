// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/prefetch_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace stowage::planner {

namespace {

int64_t floorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// Moments as times since the begin of the period, and back.
class Clock {
 public:
  explicit Clock(const CopySchedule& copies) : copies_(copies) {}

  Moment momentAt(int64_t time) const {
    const int64_t turns = floorDiv(time, copies_.length);
    const int64_t within = time - turns * copies_.length;
    const auto& starts = copies_.stepStarts;
    const int64_t step =
        std::upper_bound(starts.begin(), starts.end(), within) - starts.begin() - 1;
    return {step + turns * steps(), within - starts[static_cast<size_t>(step)]};
  }
  int64_t timeOf(const Moment& moment) const {
    const int64_t turns = floorDiv(moment.step, steps());
    const auto step = static_cast<size_t>(moment.step - turns * steps());
    const int64_t start = copies_.stepStarts[step];
    const int64_t end =
        step + 1 < copies_.stepStarts.size() ? copies_.stepStarts[step + 1] : copies_.length;
    return turns * copies_.length + start + std::min(moment.offset, end - start);
  }

 private:
  int64_t steps() const { return static_cast<int64_t>(copies_.stepStarts.size()); }
  const CopySchedule& copies_;
};

int64_t prefetchTime(const GapTable& table, const Expansion& x, size_t prefetch) {
  const Stay& stay = x.stays[static_cast<size_t>(x.prefetches[prefetch].stay)];
  return copyTime(table.problem().costs.links.hostToDevice, table.bytes(stay.storage));
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
      const int64_t period = i < count ? 0 : x.stepCount();
      waiting.push({x.prefetches[i % count].deadline + period, i});
    }
    const size_t i = waiting.top().second;
    waiting.pop();
    if (i >= count) starts[i - count] = now - length;
    now += prefetchTime(table, x, i % count);
  }
  return starts;
}

// The first moment at `tick` of the order that is not before `from`.
Moment momentAfter(const IssueOrder& order, int64_t tick, const Moment& from, int64_t steps) {
  Moment at = order.moments[static_cast<size_t>(tick % order.period)];
  at.step += (floorDiv(from.step - at.step, steps) - 1) * steps;
  while (at < from) at.step += steps;
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
      const int64_t due = copies.stepStarts[static_cast<size_t>(x.prefetches[i].deadline)];
      next = std::min(next, due - duration) - duration;
      latest[i] = next;
    }
    next += copies.length;
  }
  for (size_t i = 0; i < latest.size(); ++i) {
    copies.latest.push_back(std::max(copies.place[i], clock.momentAt(latest[i])));
  }
}

void issueInputsAfterBoundary(const Expansion& x, CopySchedule& copies) {
  const Moment boundary{0, 0};
  Moment first = boundary;
  for (size_t i = 0; i < x.prefetches.size(); ++i) {
    if (x.prefetches[i].ofThisStep) first = std::min(first, copies.in[i].start);
  }
  std::vector<std::pair<Moment, size_t>> late;
  for (size_t i = 0; i < x.prefetches.size(); ++i) {
    const Moment& start = copies.in[i].start;
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

bool putOff(const GapTable& table, const Expansion& x, const IssueOrder& order,
            const std::vector<int64_t>& delays, CopySchedule& copies) {
  bool isAny = false;
  for (size_t i = 0; i < x.prefetches.size(); ++i) {
    const auto stay = static_cast<size_t>(x.prefetches[i].stay);
    if (delays[stay] == 0) continue;
    // The event just before the new begin makes room.
    const int64_t tick = order.stays[stay].begin + delays[stay] - 1;
    copies.place[i] = momentAfter(order, tick, copies.place[i], x.stepCount());
    isAny = true;
  }
  if (!isAny) return false;
  const Clock clock(copies);
  std::vector<int64_t> releases;
  for (const Moment& place : copies.place) releases.push_back(clock.timeOf(place));
  const std::vector<int64_t> starts = serve(table, x, releases, copies.length);
  for (size_t i = 0; i < x.prefetches.size(); ++i) {
    CopySpan& span = copies.in[i];
    const Moment last{x.prefetches[i].deadline - 1, INT64_MAX};
    span.start = std::max(copies.place[i], std::min(last, clock.momentAt(starts[i])));
    if (span.end <= span.start) span.end = {span.start.step + 1, 0};
    copies.latest[i] = std::max(copies.latest[i], copies.place[i]);
  }
  issueInputsAfterBoundary(x, copies);
  return true;
}

}  // namespace stowage::planner
