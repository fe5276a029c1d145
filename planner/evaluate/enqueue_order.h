// SPDX-License-Identifier: Apache-2.0
//
// One total order of all starts and ends in a step, from the launches and the simulated positions
// of the copies. The index of an event in it is its tick. Starts give the enqueue order.
// Ticks give every live range, temporary and host copy an interval on a circle of `period` ticks;
// tick 0 is the step boundary. Two things whose intervals do not overlap may share bytes: the
// dependencies then follow the enqueue order.
#ifndef STOWAGE_PLANNER_EVALUATE_ENQUEUE_ORDER_H_
#define STOWAGE_PLANNER_EVALUATE_ENQUEUE_ORDER_H_

#include <vector>

#include "ir/base/interval.h"
#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/expand.h"

namespace stowage::planner {

struct EnqueuedCommand {
  enum class Kind : uint8_t { kLaunch, kOffload, kPrefetch, kHostRun, kDiskWrite, kDiskRead };
  Kind kind = Kind::kLaunch;
  int32_t index = 0;  // of the launch, offload, prefetch or host run; for the disk: of the offload
                      // whose bytes are written, of the prefetch whose bytes are read
};

struct EnqueueOrder {
  int64_t period = 0;
  std::vector<EnqueuedCommand> commands;
  std::vector<ComputePosition> positions;  // by tick
  std::vector<ir::TickRange> liveTicks;    // by live range: begin in [0, period), at most a period
  std::vector<int64_t> latestBegins;       // by live range: its begin may be put off up to here
  std::vector<ir::TickRange> launches;     // by launch
  std::vector<int64_t> offloadStarts;      // by offload, in its live range's frame: not wrapped
  std::vector<ir::TickRange> hosts;        // by storage; empty if it has no place on the host
};

EnqueueOrder findEnqueueOrder(const GapTable& table, const Expansion& expansion,
                              const CopySchedule& copies);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_ENQUEUE_ORDER_H_
