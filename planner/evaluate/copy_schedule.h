// SPDX-License-Identifier: Apache-2.0
//
// Decides when copies run, by simulating a few periods of the step in bytes. An offload starts as
// soon as its source is written and the engine is free, first those whose bytes can be freed first.
// Prefetches run in order of their deadlines, as early as the prefetch limit allows; bytes reserved
// for later launches count against it. Nodes on the host run one after the other, as their operands
// come. A node waits for its operands, and for offloads whose bytes
// it needs.
// Results are positions on the compute stream. They give the enqueue order and how long bytes stay
// on the device. They are targets, not guarantees: dependencies later exclude forbidden overlaps,
// and exact times come from planner/evaluate/timeline.h.
#ifndef STOWAGE_PLANNER_EVALUATE_COPY_SCHEDULE_H_
#define STOWAGE_PLANNER_EVALUATE_COPY_SCHEDULE_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "planner/evaluate/expand.h"

namespace stowage::planner {

/// A position on the compute stream: the launch that started last, and the time since its start.
/// `launch` is in the frame of the object concerned, so it may be negative or beyond the number of
/// launches.
struct ComputePosition {
  int64_t launch = 0;
  int64_t offset = 0;  // nanoseconds
  friend auto operator<=>(const ComputePosition&, const ComputePosition&) = default;
};

struct CopySpan {
  ComputePosition start;
  ComputePosition end;
};

struct CopySchedule {
  std::vector<CopySpan> out;   // by Offload
  std::vector<CopySpan> in;    // by Prefetch
  std::vector<CopySpan> host;  // by HostRun
  /// By Prefetch: its bytes on the device are free for it from here on. Not after the start.
  std::vector<ComputePosition> place;
  /// By Prefetch: the latest start for which compute need not wait, if other copies start at
  /// theirs. Not before the start.
  std::vector<ComputePosition> latest;
  std::vector<int64_t> launchStarts;  // by launch: times since the begin of a period, as simulated
  int64_t length = 0;                 // of a period
  /// On ranks: a collective has its bytes until the link is done with it; false: for its own
  /// launch.
  bool isBesideLink = false;
};

/// `prefetchLimit`: bytes of the device that prefetches may fill, reserved regions not counted.
CopySchedule scheduleCopies(const GapTable& table, const Expansion& expansion,
                            int64_t prefetchLimit);

/// Nanoseconds of a copy of `bytes`.
int64_t copyTime(const ir::LinkRate& rate, int64_t bytes);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_COPY_SCHEDULE_H_
