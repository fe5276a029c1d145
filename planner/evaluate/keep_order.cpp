// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/keep_order.h"

#include <algorithm>
#include <limits>

namespace stowage::planner {

namespace {

constexpr int64_t kEndOfLaunch = std::numeric_limits<int64_t>::max();

// However busy the engine is.
void enqueueBefore(int64_t boundary, ComputePosition& start) {
  if (start.launch >= boundary) start = {boundary - 1, kEndOfLaunch};
}

void keepOutputs(const Expansion& x, CopySchedule& copies) {
  const int64_t period = x.launchCount();
  for (size_t i = 0; i < x.offloads.size(); ++i) {
    if (!x.offloads[i].isOutput) continue;
    enqueueBefore((x.offloads[i].after / period + 1) * period, copies.out[i].start);
  }
}

void keepHostRuns(const Expansion& x, CopySchedule& copies) {
  for (size_t i = 0; i < x.hostRuns.size(); ++i) {
    ComputePosition& start = copies.host[i].start;
    for (const int32_t offload : x.hostRuns[i].offloads) {
      // In the frame of its own launch, which may be a period later.
      const auto index = static_cast<size_t>(offload);
      const int64_t shift = x.offloads[index].after / x.launchCount() * x.launchCount();
      const ComputePosition& copy = copies.out[index].start;
      start = std::max(start, ComputePosition{copy.launch - shift, copy.offset});
    }
    for (const int32_t run : x.hostRuns[i].before) {
      start = std::max(start, copies.host[static_cast<size_t>(run)].start);
    }
    enqueueBefore(x.launchCount(), start);
  }
}

// A source of the period before was timed against that period.
void putAfterSource(const Expansion& x, size_t index, CopySchedule& copies) {
  const Prefetch& prefetch = x.prefetches[index];
  if (prefetch.source < 0 && prefetch.hostRun < 0) return;
  CopySpan& source = prefetch.source >= 0 ? copies.out[static_cast<size_t>(prefetch.source)]
                                          : copies.host[static_cast<size_t>(prefetch.hostRun)];
  const int64_t shift = int64_t{prefetch.sourceShift} * x.launchCount();
  ComputePosition& start = copies.in[index].start;
  start = std::max(start, ComputePosition{source.end.launch + shift, source.end.offset});
  if (start.launch >= prefetch.deadline) start = {prefetch.deadline - 1, kEndOfLaunch};
  source.start = std::min(source.start, ComputePosition{start.launch - shift, start.offset});
}

}  // namespace

void keepOrder(const Expansion& x, CopySchedule& copies) {
  keepOutputs(x, copies);
  keepHostRuns(x, copies);
  for (size_t i = 0; i < x.prefetches.size(); ++i) putAfterSource(x, i, copies);
}

}  // namespace stowage::planner
