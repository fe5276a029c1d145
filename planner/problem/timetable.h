// SPDX-License-Identifier: Apache-2.0
//
// The outcome of evaluating decisions: every action of the step in enqueue order, with the
// residencies it binds, their offsets, and when it runs in the steady state. The lowering passes
// write a schedule from it: originals and recomputes first, then copies, offsets and waits. They
// derive the waits anew, since a timetable has none.
#ifndef STOWAGE_PLANNER_PROBLEM_TIMETABLE_H_
#define STOWAGE_PLANNER_PROBLEM_TIMETABLE_H_

#include <vector>

#include "ir/base/units.h"
#include "ir/schedule/schedule.h"
#include "planner/problem/decisions.h"

namespace stowage::planner {

struct TimedAction {
  ir::Command command;  // complete but for wait and prev
  Nanoseconds start;    // in a step far from the first, relative to that step's begin
  Nanoseconds end;
};

struct Stalls {
  Nanoseconds deviceToHost;  // compute waited for bytes to leave
  Nanoseconds hostToDevice;  // compute waited for bytes to arrive
  Nanoseconds disk;
  Nanoseconds ranks;  // compute waited for a collective
};

/// Where compute waited for a copy or a collective.
struct StallAt {
  ir::NodeId node;       // that waited; a recompute waits at the node that it is for
  bool isOut = false;    // for bytes to leave; false: for bytes to arrive
  bool isRanks = false;  // from, or to, other ranks
  Nanoseconds time;
};

struct Timetable {
  Decisions decisions;  // those asked for, less what turned out to have no effect
  std::vector<ir::Residency> residencies;  // placed
  std::vector<ir::BoundaryEntry> boundary;
  std::vector<TimedAction> actions;          // enqueue order
  std::vector<ir::ReservedRegion> reserved;  // the target's, with their offsets
  bool joined = false;
  /// Bytes that prefetches were allowed to fill. With the decisions, it reproduces the timetable.
  Bytes prefetchLimit;
  Bytes devicePeak;  // bytes of device arena it needs, reserved regions included
  Bytes hostPeak;
  Bytes diskPeak;
  Nanoseconds stepTime;     // average period of the steady state
  Nanoseconds computeTime;  // sum of the original nodes: the time with unlimited memory
  Stalls stalls;
  std::vector<StallAt> stallsAt;  // in order of the actions
  Bytes bytesOut;
  Bytes bytesIn;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_PROBLEM_TIMETABLE_H_
