// SPDX-License-Identifier: Apache-2.0
//
// When the commands of a schedule ran where they are: inside steps, beside copies, with the caches
// that their neighbours left. What `runtime/calibrate/calibrate.h` measures of ops alone is
// corrected by it, and `runtime/measure/step_stalls.h` says from it what compute waited for.
#ifndef STOWAGE_RUNTIME_MEASURE_RUN_TIMES_H_
#define STOWAGE_RUNTIME_MEASURE_RUN_TIMES_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/units.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::runtime {

/// One command in one step. All times of a program count from the same moment, by one clock.
struct CommandTimes {
  Nanoseconds launchBegin;  // the launch thread enqueues it
  Nanoseconds launchEnd;
  Nanoseconds begin;  // the stream works on it
  Nanoseconds end;
};

struct StepTimes {
  int64_t step = 0;
  /// By command; nothing for one that gave its stream nothing to do.
  std::vector<std::optional<CommandTimes>> commands;
};

/// Where a launch's duration begins: with its work, or when nothing was missing any more. The
/// latter includes launch latency (StallCause::kLaunchLatency).
enum class CountedFrom : uint8_t { kBegin, kReady };
/// By command: the mean of its durations over the middle half of the steps, by their time on the
/// compute stream, so that they add up to what whole steps took (clocks vary from step to step);
/// nothing for what was never timed.
std::vector<std::optional<Nanoseconds>> typicalDurations(const ir::Schedule& schedule,
                                                         llvm::ArrayRef<StepTimes> steps,
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
TypicalTimes typicalTimes(const ir::Schedule& schedule, llvm::ArrayRef<StepTimes> steps,
                          const ir::NodeCosts& alone, size_t firstUpdate = SIZE_MAX);

/// `table` with the times of launches in place of those of ops alone: per signature, and for copies
/// all together where a step has 16 or more, the mean over its commands, recomputes included; and
/// with the rates that links had there, beside each other and beside compute, where a step copies
/// 16 MiB or more that way (copies below 256 KiB not counted). Launch overhead is multiplied by
/// `launchShare`, since taking times adds to it. Where it was not seen, the overhead alone is
/// scaled like that of all launches that were seen (16 or more). `times` by command of `schedule`.
ir::CostTable correctTimes(ir::CostTable table, const ir::Graph& graph,
                           const ir::Schedule& schedule, const TypicalTimes& times,
                           double launchShare = 1);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MEASURE_RUN_TIMES_H_
