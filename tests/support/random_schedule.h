// SPDX-License-Identifier: Apache-2.0
//
// Valid schedules of any graph without a planner: each gap gets its action by a throw of dice, the
// rest follows (copies, recomputes, offsets, waits, boundary, rows, claims). They are not good
// schedules, but they use everything that a schedule can say: what the verifier and the executor
// are tested with. Shares no code with ir/verify, planner or passes. The same graph, target and
// style give the same schedule.
#ifndef STOWAGE_TESTS_SUPPORT_RANDOM_SCHEDULE_H_
#define STOWAGE_TESTS_SUPPORT_RANDOM_SCHEDULE_H_

#include <cstdint>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::tests {

/// Chances are in permille, per site; 0 everywhere keeps every storage where it is.
struct ScheduleStyle {
  uint64_t seed = 1;
  int host = 0;          // a gap is spent on the host
  int disk = 0;          // a gap is spent on disk
  int recompute = 0;     // a gap ends in recomputes, where that is legal
  int inPlaceReuse = 0;  // a result lands on a dying operand, where the op table allows it
  int temp = 0;          // a launch has a temp region
  int tail = 0;       // a persistent storage that left is copied back at the end of the step before
  int lookahead = 4;  // nodes by which a copy back may come before its reader
  bool joined = false;
  bool thinWaits = false;    // without waits that others imply; takes quadratic time
  bool serialWaits = false;  // every command waits for the one before, instead of what it needs
};

/// A style with all chances drawn from the seed.
ScheduleStyle randomStyle(uint64_t seed);

/// At level kSynced, with fingerprints and claims of bytes.
ir::Schedule makeRandomSchedule(const ir::Graph& graph, const ir::Target& target,
                                const ScheduleStyle& style);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_RANDOM_SCHEDULE_H_
