// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/host_run_queue.h"

#include <algorithm>

namespace stowage::planner {

HostRunQueue::HostRunQueue(const Expansion& expansion)
    : x_(expansion),
      after_(x_.launches.size(), x_.hostRuns.size(),
             [&](size_t i) { return int64_t{x_.hostRuns[i].after}; }),
      prefetches_(x_.hostRuns.size(), x_.prefetches.size(),
                  [&](size_t i) { return int64_t{x_.prefetches[i].hostRun}; }),
      released_(x_.hostRuns.size(), -1),
      queued_(x_.hostRuns.size(), -1),
      done_(x_.hostRuns.size(), -1),
      deadlines_(x_.hostRuns.size(), x_.launchCount()) {
  if (x_.hostRuns.empty()) return;
  runsOf_.resize(x_.offloads.size());
  runsAfter_.resize(x_.hostRuns.size());
  offloaded_.assign(x_.offloads.size(), INT64_MIN);
  for (const Prefetch& prefetch : x_.prefetches) {
    if (prefetch.hostRun < 0) continue;
    int64_t& deadline = deadlines_[static_cast<size_t>(prefetch.hostRun)];
    deadline = std::min<int64_t>(deadline, prefetch.deadline);
  }
  for (size_t i = 0; i < x_.hostRuns.size(); ++i) {
    for (const int32_t offload : x_.hostRuns[i].offloads) {
      runsOf_[static_cast<size_t>(offload)].push_back(static_cast<int32_t>(i));
    }
    for (const int32_t other : x_.hostRuns[i].before) {
      runsAfter_[static_cast<size_t>(other)].push_back(static_cast<int32_t>(i));
    }
  }
}

std::optional<HostRunQueue::Entry> HostRunQueue::pop() {
  if (ready_.empty()) return std::nullopt;
  const auto [position, run, frame] = ready_.top();
  ready_.pop();
  return Entry{run, frame};
}

void HostRunQueue::endLaunch(int64_t launch, int64_t frame) {
  for (const int32_t run : after_.at(launch)) {
    released_[static_cast<size_t>(run)] = frame;
    queue(run);
  }
}

void HostRunQueue::endOffload(int32_t offload, int64_t frame) {
  if (runsOf_.empty()) return;
  const auto index = static_cast<size_t>(offload);
  offloaded_[index] = frame;
  for (const int32_t run : runsOf_[index]) queue(run);
}

void HostRunQueue::endRun(const Entry& entry) {
  const auto index = static_cast<size_t>(entry.run);
  done_[index] = entry.frame;
  for (const int32_t run : runsAfter_[index]) queue(run);
}

void HostRunQueue::queue(int32_t run) {
  const auto index = static_cast<size_t>(run);
  const int64_t period = x_.launchCount();
  const int64_t frame = queued_[index] + 1;
  if (released_[index] < frame) return;
  for (const int32_t offload : x_.hostRuns[index].offloads) {
    const auto copy = static_cast<size_t>(offload);
    if (offloaded_[copy] < frame - x_.offloads[copy].after / period) return;
  }
  for (const int32_t other : x_.hostRuns[index].before) {
    if (done_[static_cast<size_t>(other)] < frame) return;
  }
  ready_.push({frame * period + deadlines_[index], run, frame});
  queued_[index] = frame;
}

}  // namespace stowage::planner
