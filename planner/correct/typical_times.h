// SPDX-License-Identifier: Apache-2.0
//
// Typical times of a schedule's commands, from measured steps: how long each takes, what of it is
// work, and its launch overhead. All are means over the middle half of the steps.
#ifndef STOWAGE_PLANNER_CORRECT_TYPICAL_TIMES_H_
#define STOWAGE_PLANNER_CORRECT_TYPICAL_TIMES_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/units.h"
#include "ir/costs/cost_table.h"
#include "ir/costs/step_times.h"
#include "ir/schedule/schedule.h"

namespace stowage::planner {

/// Where a launch's duration begins: with its work, or when nothing was missing any more. The
/// latter includes launch latency (StallCause::kLaunchLatency).
enum class CountedFrom : uint8_t { kBegin, kReady };
/// By command: the mean of its durations over the middle half of the steps, by their time on the
/// compute stream, so that they add up to what whole steps took (clocks vary from step to step);
/// nothing for what was never timed.
std::vector<std::optional<Nanoseconds>> typicalDurations(const ir::Schedule& schedule,
                                                         llvm::ArrayRef<ir::StepTimes> steps,
                                                         CountedFrom from);

/// What steps say of their commands' costs, by command: means over the same middle half.
struct TypicalTimes {
  /// A launch's work counts from where it could have begun, launch latency included. Where the
  /// latency cannot be seen, since the launch was late, it is the median of other launches.
  std::vector<std::optional<Nanoseconds>> work;
  /// Launch overhead of a command, with the events before it; for a step's first launch also what
  /// the thread does between two steps. Not when so much was under way that the driver may have
  /// held the thread back, nor what it waited for at a step's begin.
  std::vector<std::optional<Nanoseconds>> launch;
};
/// `alone`, by node of the schedule's graph: its work measured alone. A launch of several kernels
/// may begin before its last kernel is launched, and wait inside. Then `alone` is its work, but no
/// less than the time from the last kernel's launch to the end. `firstUpdate`: the command before
/// which the launch thread waits for the step's scalars.
TypicalTimes typicalTimes(const ir::Schedule& schedule, llvm::ArrayRef<ir::StepTimes> steps,
                          const ir::NodeCosts& alone, size_t firstUpdate = SIZE_MAX);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_CORRECT_TYPICAL_TIMES_H_
