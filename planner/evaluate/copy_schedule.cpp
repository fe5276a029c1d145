// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/copy_schedule.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "planner/evaluate/by_launch.h"
#include "planner/evaluate/host_run_queue.h"
#include "planner/evaluate/keep_order.h"
#include "planner/evaluate/launch_loads.h"
#include "planner/evaluate/load_tree.h"
#include "planner/evaluate/prefetch_order.h"
#include "planner/evaluate/timing.h"

namespace stowage::planner {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kFrames = 4;    // periods that compute runs at most
constexpr int64_t kMeasured = 1;  // the frame whose positions are the result

int64_t floorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t floorMod(int64_t a, int64_t b) { return a - floorDiv(a, b) * b; }

// Entries ordered by key, then id: a total order.
using Queue = std::priority_queue<std::tuple<int64_t, int32_t, int64_t>,
                                  std::vector<std::tuple<int64_t, int32_t, int64_t>>,
                                  std::greater<>>;  // (key, job, frame)

struct Engine {
  int32_t job = -1;
  int64_t frame = 0;
  int64_t end = kNever;
  bool isBusy() const { return job >= 0; }
};

std::vector<bool> findMeetingLaunches(const Problem& problem, const Expansion& expansion) {
  std::vector<bool> meetings(expansion.launches.size(), false);
  if (problem.graphMode == ir::GraphMode::kNone) return meetings;
  meetings.front() = true;
  if (problem.graphMode == ir::GraphMode::kWhole) return meetings;
  for (size_t i = 1; i < expansion.launches.size(); ++i) {
    const Launch& launch = expansion.launches[i];
    if (!launch.node.isValid() || !ir::endsGraph(problem.graph.node(launch.node))) continue;
    meetings[i] = true;
    break;
  }
  return meetings;
}

class Simulation {
 public:
  Simulation(const GapTable& table, const Expansion& expansion, int64_t prefetchLimit)
      : table_(table),
        x_(expansion),
        links_(table.problem().costs.links),
        prefetchLimit_(prefetchLimit),
        period_(expansion.launchCount()),
        isJoined_(table.problem().graphMode == ir::GraphMode::kWhole),
        isMeeting_(findMeetingLaunches(table.problem(), expansion)),
        loads_(computeLoads(table, expansion)),
        outsAfter_(x_.launches.size(), x_.offloads.size(),
                   [&](size_t i) { return floorMod(x_.offloads[i].after, period_); }),
        releasedBy_(x_.launches.size(), x_.prefetches.size(),
                    [&](size_t i) { return floorMod(releaseOf(i), period_); }),
        dueAt_(x_.launches.size(), x_.prefetches.size(),
               [&](size_t i) { return int64_t{x_.prefetches[i].deadline}; }),
        endsAt_(x_.launches.size(), x_.liveRanges.size(),
                [&](size_t i) {
                  const LiveRange& range = x_.liveRanges[i];
                  return range.offload < 0 || range.always ? -1 : floorMod(range.end, period_);
                }),
        prefetchesOf_(x_.offloads.size(), x_.prefetches.size(),
                      [&](size_t i) { return int64_t{x_.prefetches[i].source}; }),
        hostRuns_(expansion) {}

  CopySchedule run() {
    prepare();
    while (remaining_ > 0) {
      startWhatCan();
      advance();
    }
    keepOrder(x_, result_);
    for (const CopySpan& span : result_.in) result_.place.push_back(span.start);
    noteLaunches();
    return std::move(result_);
  }

 private:
  // Joined steps do not run into each other, so what belongs to a step comes after its step
  // boundary.
  int64_t releaseOf(size_t prefetch) const {
    const Prefetch& one = x_.prefetches[prefetch];
    return isJoined_ && one.ofThisStep ? 0 : one.release;
  }

  void prepare() {
    result_.out.resize(x_.offloads.size());
    result_.in.resize(x_.prefetches.size());
    result_.host.resize(x_.hostRuns.size());
    launchStarts_.assign(x_.launches.size(), -1);
    remaining_ =
        static_cast<int64_t>(x_.offloads.size() + x_.prefetches.size() + x_.hostRuns.size());
    // Copies that would have begun before the first frame count as done.
    for (const Offload& out : x_.offloads) outDone_.push_back(out.after < period_ ? -1 : -2);
    leaving_.assign(x_.offloads.size(), 0);
    prefetchQueued_.assign(x_.prefetches.size(), -1);
    prefetchFrom_.assign(x_.prefetches.size(), 0);
    for (size_t i = 0; i < x_.prefetches.size(); ++i) {
      prefetchReleased_.push_back(releaseOf(i) < 0 ? 0 : -1);
    }
    missing_.assign(x_.launches.size(), 0);
    for (int64_t launch = 0; launch < period_; ++launch) resetMissing(launch);
    for (size_t i = 0; i < x_.prefetches.size(); ++i) queuePrefetch(static_cast<int32_t>(i));
  }

  void resetMissing(int64_t launch) {
    missing_[static_cast<size_t>(launch)] = static_cast<int32_t>(dueAt_.at(launch).size());
  }

  int64_t bytesOf(int32_t liveRange) const {
    return table_.bytes(x_.liveRanges[static_cast<size_t>(liveRange)].storage);
  }

  // --- what can start now -------------------------------------------------------------------

  void startWhatCan() {
    bool again = true;
    while (again) {
      again = startOffload();
      again = startPrefetch() || again;
      again = startHostRun() || again;
      again = startLaunch() || again;
    }
  }

  bool waitsAtBoundary() const { return isJoined_ && !computing_ && floorMod(next_, period_) == 0; }
  // Streams meet where a CUDA graph begins or ends: nothing starts until all that runs is over.
  // What the launch behind that place needs still comes before it.
  bool waitsForOthers() const {
    const int64_t launch = floorMod(next_, period_);
    return !computing_ && isMeeting_[static_cast<size_t>(launch)] && isReady(launch);
  }
  // Its operands are there, and its bytes are not about to be freed.
  bool isReady(int64_t launch) const {
    if (missing_[static_cast<size_t>(launch)] > 0) return false;
    return launch == 0 || leavingBytes_ == 0 || loads_.at(launch) + leavingBytes_ <= prefetchLimit_;
  }

  bool startOffload() {
    if (out_.isBusy() || outQueue_.empty()) return false;
    const auto [key, job, frame] = outQueue_.top();
    const Offload& copy = x_.offloads[static_cast<size_t>(job)];
    if (waitsForOthers() && !copy.isOutput) return false;
    outQueue_.pop();
    out_ = {job, frame, now_ + copyTime(links_.deviceToHost, bytesOf(copy.liveRange))};
    if (frame == kMeasured) result_.out[static_cast<size_t>(job)].start = position();
    return true;
  }

  bool startPrefetch() {
    if (in_.isBusy() || inQueue_.empty() || waitsAtBoundary() || waitsForOthers()) return false;
    const auto [deadline, job, frame] = inQueue_.top();
    const int64_t bytes = bytesOf(x_.prefetches[static_cast<size_t>(job)].liveRange);
    if (!hasRoom(deadline, bytes)) return false;
    inQueue_.pop();
    const int64_t from = computing_ ? next_ - 1 : next_;
    prefetchFrom_[static_cast<size_t>(job)] = from;
    loads_.add(from, deadline, bytes);
    const int64_t alone = copyTime(links_.hostToDevice, bytes);
    in_ = {job, frame, now_ + (host_.isBusy() ? besideHost(alone) : alone)};
    if (frame == kMeasured) result_.in[static_cast<size_t>(job)].start = position();
    return true;
  }

  bool startHostRun() {
    if (host_.isBusy()) return false;
    const std::optional<HostRunQueue::Entry> next = hostRuns_.pop();
    if (!next) return false;
    if (in_.isBusy()) in_.end = now_ + besideHost(in_.end - now_);
    const ir::NodeId node = x_.hostRuns[static_cast<size_t>(next->run)].node;
    host_ = {next->run, next->frame, now_ + table_.problem().costs.hostWork[node.index()].value()};
    if (next->frame == kMeasured) result_.host[static_cast<size_t>(next->run)].start = position();
    return true;
  }

  /// Time that a prefetch takes beside an update on the host, if `alone` without.
  int64_t besideHost(int64_t alone) const { return alone * 1000 / links_.besideHostPermille; }

  // A prefetch may take bytes that no launch up to its deadline has been promised. The one that
  // compute waits for waits only for bytes that are leaving: its own are already counted.
  bool hasRoom(int64_t deadline, int64_t bytes) const {
    const int64_t from = computing_ ? next_ - 1 : next_;
    if (deadline <= from)
      return leavingBytes_ == 0 || loads_.at(deadline) + leavingBytes_ <= prefetchLimit_;
    return loads_.highest(from, deadline) + bytes <= prefetchLimit_ &&
           loads_.at(from) + leavingBytes_ + bytes <= prefetchLimit_;
  }

  bool startLaunch() {
    if (computing_ || next_ >= kFrames * period_) return false;
    const int64_t launch = floorMod(next_, period_);
    if (!isReady(launch)) return false;
    if (isMeeting_[static_cast<size_t>(launch)] && isAnyBusy()) return false;
    for (const int32_t prefetch : dueAt_.at(launch)) {
      loads_.add(prefetchFrom_[static_cast<size_t>(prefetch)], next_,
                 -bytesOf(x_.prefetches[prefetch].liveRange));
    }
    resetMissing(launch);
    computing_ = true;
    launchStart_ = now_;
    if (floorDiv(next_, period_) == kMeasured) launchStarts_[static_cast<size_t>(launch)] = now_;
    launchEnd_ = now_ + timeOf(launch);
    ++next_;
    return true;
  }

  bool isAnyBusy() const { return out_.isBusy() || in_.isBusy() || host_.isBusy(); }

  int64_t timeOf(int64_t launch) const {
    const Launch& launched = x_.launches[static_cast<size_t>(launch)];
    return launched.node.isValid() ? table_.nodeTime(launched.node.index()) : 0;
  }

  ComputePosition position() const {
    return {next_ - 1 - kMeasured * period_, now_ - launchStart_};
  }

  // --- what ends next -----------------------------------------------------------------------

  void advance() {
    const int64_t launchEnd = computing_ ? launchEnd_ : kNever;
    now_ = std::min({launchEnd, out_.end, in_.end, host_.end});
    assert(now_ != kNever && "the simulation is stuck");
    if (out_.end == now_) endOffload();
    if (in_.end == now_) endPrefetch();
    if (host_.end == now_) endHostRun();
    if (launchEnd == now_) endLaunch();
  }

  void endOffload() {
    const auto job = static_cast<size_t>(out_.job);
    if (out_.frame == kMeasured) {
      result_.out[job].end = position();
      --remaining_;
    }
    outDone_[job] = out_.frame;
    if (leaving_[job] > 0) {
      --leaving_[job];
      leavingBytes_ -= bytesOf(x_.offloads[job].liveRange);
    }
    out_ = {};
    for (const int32_t prefetch : prefetchesOf_.at(static_cast<int64_t>(job)))
      queuePrefetch(prefetch);
    hostRuns_.endOffload(static_cast<int32_t>(job), outDone_[job]);
  }

  void endHostRun() {
    const HostRunQueue::Entry ended{host_.job, host_.frame};
    if (ended.frame == kMeasured) {
      result_.host[static_cast<size_t>(ended.run)].end = position();
      --remaining_;
    }
    hostRuns_.endRun(ended);
    host_ = {};
    if (in_.isBusy()) in_.end = now_ + (in_.end - now_) * links_.besideHostPermille / 1000;
    for (const int32_t prefetch : hostRuns_.prefetchesOf(ended.run)) queuePrefetch(prefetch);
  }

  void endPrefetch() {
    const auto job = static_cast<size_t>(in_.job);
    if (in_.frame == kMeasured) {
      result_.in[job].end = position();
      --remaining_;
    }
    --missing_[static_cast<size_t>(x_.prefetches[job].deadline)];
    in_ = {};
  }

  void endLaunch() {
    computing_ = false;
    const int64_t launch = floorMod(next_ - 1, period_);
    const int64_t frame = floorDiv(next_ - 1, period_);
    for (const int32_t job : outsAfter_.at(launch)) {
      const Offload& copy = x_.offloads[static_cast<size_t>(job)];
      const int64_t own = frame - floorDiv(copy.after, period_);
      const int64_t free = x_.liveRanges[static_cast<size_t>(copy.liveRange)].end + own * period_;
      outQueue_.push({free, job, own});
    }
    hostRuns_.endLaunch(launch, frame);
    for (const int32_t liveRange : endsAt_.at(launch))
      endLiveRange(x_.liveRanges[static_cast<size_t>(liveRange)], frame);
    for (const int32_t prefetch : releasedBy_.at(launch)) {
      prefetchReleased_[static_cast<size_t>(prefetch)] =
          frame - floorDiv(releaseOf(static_cast<size_t>(prefetch)), period_);
      queuePrefetch(prefetch);
    }
  }

  void endLiveRange(const LiveRange& range, int64_t frame) {
    const auto job = static_cast<size_t>(range.offload);
    if (outDone_[job] >= frame - floorDiv(range.end, period_)) return;
    ++leaving_[job];
    leavingBytes_ += table_.bytes(range.storage);
  }

  // A prefetch is due for the engine once the bytes are gone from the device and on the host.
  void queuePrefetch(int32_t index) {
    const auto job = static_cast<size_t>(index);
    const Prefetch& prefetch = x_.prefetches[job];
    while (true) {
      const int64_t frame = prefetchQueued_[job] + 1;
      if (prefetchReleased_[job] < frame) return;
      if (prefetch.source >= 0 &&
          outDone_[static_cast<size_t>(prefetch.source)] < frame + prefetch.sourceShift) {
        return;
      }
      if (prefetch.hostRun >= 0 &&
          hostRuns_.done(prefetch.hostRun) < frame + prefetch.sourceShift) {
        return;
      }
      inQueue_.push({prefetch.deadline + frame * period_, index, frame});
      prefetchQueued_[job] = frame;
    }
  }

  void noteLaunches() {
    launchStarts_.front() = std::max<int64_t>(launchStarts_.front(), 0);
    for (int64_t i = 1; i < period_; ++i) {
      auto& start = launchStarts_[static_cast<size_t>(i)];
      if (start < 0) start = launchStarts_[static_cast<size_t>(i - 1)] + timeOf(i - 1);
    }
    const int64_t begin = launchStarts_.front();
    for (const int64_t start : launchStarts_) result_.launchStarts.push_back(start - begin);
    result_.length =
        std::max<int64_t>(result_.launchStarts.back() + timeOf(period_ - 1), int64_t{1});
  }

  const GapTable& table_;
  const Expansion& x_;
  const ir::LinkModel& links_;
  int64_t prefetchLimit_;
  int64_t period_;
  bool isJoined_;
  std::vector<bool> isMeeting_;  // by launch: all streams meet before it
  LoadTree loads_;
  ByLaunch outsAfter_, releasedBy_, dueAt_, endsAt_, prefetchesOf_;
  HostRunQueue hostRuns_;

  CopySchedule result_;
  std::vector<int64_t> launchStarts_;  // by launch, in the measured frame
  int64_t remaining_ = 0;              // copies of the measured frame that have not ended
  int64_t now_ = 0;
  int64_t next_ = 0;  // launch that compute starts next, counted over all frames
  bool computing_ = false;
  int64_t launchStart_ = 0;
  int64_t launchEnd_ = 0;
  Engine out_, in_, host_;
  Queue outQueue_, inQueue_;
  std::vector<int64_t> outDone_;  // by offload: latest frame that has ended
  std::vector<int32_t> leaving_;  // by offload: live ranges past their last use that wait for it
  int64_t leavingBytes_ = 0;
  std::vector<int64_t> prefetchReleased_;  // by prefetch: latest frame that may be queued
  std::vector<int64_t> prefetchQueued_;
  std::vector<int64_t> prefetchFrom_;  // launch from which its bytes are counted
  std::vector<int32_t> missing_;       // by launch: prefetches that it still waits for
};

}  // namespace

int64_t copyTime(const ir::LinkRate& rate, int64_t bytes) {
  return rate.latency.value() + transferTime(Bytes(bytes), rate.bandwidth).value();
}

CopySchedule scheduleCopies(const GapTable& table, const Expansion& expansion,
                            int64_t prefetchLimit) {
  if (expansion.offloads.empty() && expansion.prefetches.empty() && expansion.hostRuns.empty()) {
    return {};
  }
  CopySchedule schedule = Simulation(table, expansion, prefetchLimit).run();
  findLatestStarts(table, expansion, schedule);
  enqueueInputsAfterBoundary(expansion, schedule);
  return schedule;
}

}  // namespace stowage::planner
