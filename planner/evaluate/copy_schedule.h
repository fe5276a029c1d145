// SPDX-License-Identifier: Apache-2.0
//
// When copies run, by simulating a few periods of the step in bytes: copies to the host start as
// soon as their source is written and the engine is free, those first whose bytes can go first;
// copies to the device run in order of their deadlines, as early as the bytes that are promised to
// later steps leave room below the budget. A node waits for its operands, and for bytes that are
// still leaving.
// The result are moments relative to the compute stream, which say in which order commands are
// issued and how long bytes stay. They are wishes, not proofs: what must not overlap is excluded
// by dependencies later, and exact times come from planner/evaluate/timeline.h.
#ifndef STOWAGE_PLANNER_EVALUATE_COPY_SCHEDULE_H_
#define STOWAGE_PLANNER_EVALUATE_COPY_SCHEDULE_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "planner/evaluate/expand.h"

namespace stowage::planner {

/// The compute step that started last, in the frame of the object concerned (so it may be negative
/// or beyond the number of steps), and how long ago.
struct Moment {
  int64_t step = 0;
  int64_t offset = 0;  // nanoseconds
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

struct CopySpan {
  Moment start;
  Moment end;
};

struct CopySchedule {
  std::vector<CopySpan> out;   // by Offload
  std::vector<CopySpan> in;    // by Prefetch
  std::vector<Moment> place;   // by Prefetch: its bytes on the device are free for it from here on;
                               // not after the start
  std::vector<Moment> latest;  // by Prefetch: a start up to which compute need not wait for it, if
                               // others keep to theirs; not before the start
  std::vector<int64_t> stepStarts;  // by step: times since the begin of a period, as simulated
  int64_t length = 0;               // of a period
};

/// `budget`: bytes of the device that prefetches may fill, reserved regions not counted.
CopySchedule scheduleCopies(const GapTable& table, const Expansion& expansion, int64_t budget);

/// Bytes at each step when prefetched bytes arrive at their deadline and leave after their last
/// use.
std::vector<int64_t> computeLoads(const GapTable& table, const Expansion& expansion);

/// Nanoseconds of a copy of `bytes`.
int64_t copyTime(const ir::LinkRate& rate, int64_t bytes);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_COPY_SCHEDULE_H_
