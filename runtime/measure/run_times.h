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
  Nanoseconds issueBegin;  // the issuing thread hands it to its stream
  Nanoseconds issueEnd;
  Nanoseconds begin;  // the stream works on it
  Nanoseconds end;
};

struct StepTimes {
  int64_t step = 0;
  /// By command; nothing for one that gave its stream nothing to do.
  std::vector<std::optional<CommandTimes>> commands;
};

/// Where a run's duration begins: with its work, or when nothing was missing any more, which the
/// device takes a moment to begin from (StallCause::kStart).
enum class CountedFrom : uint8_t { kBegin, kReady };
/// By command: the mean of its durations over the middle half of the steps, by their time on the
/// compute stream, so that they add up to what whole steps took (clocks vary from step to step);
/// nothing for what was never timed.
std::vector<std::optional<Nanoseconds>> typicalDurations(const ir::Schedule& schedule,
                                                         llvm::ArrayRef<StepTimes> steps,
                                                         CountedFrom from);

/// What steps say of their commands' costs, by command: means over the same middle half.
struct TypicalTimes {
  /// A run's from where it could have begun: when nothing was missing and the device took its time
  /// (StallCause::kStart), that is work, too. Where that cannot be seen, since the run was handed
  /// over late, it is what others took on average.
  std::vector<std::optional<Nanoseconds>> work;
  /// What the issuing thread took for a command, with the events before it; for a step's first run
  /// also what comes between two steps. Not when so much was under way that the driver may have
  /// held the thread back, nor what it waited for at a step's begin.
  std::vector<std::optional<Nanoseconds>> issue;
};
/// `alone`, by node of the schedule's graph: its work measured alone. A run that began before all
/// of it was handed over may have waited inside: of its duration so much is work, though no less
/// than what came after it was handed over. `firstUpdate`: the command before which the issuing
/// thread waits for the step's scalars.
TypicalTimes typicalTimes(const ir::Schedule& schedule, llvm::ArrayRef<StepTimes> steps,
                          const ir::NodeCosts& alone, size_t firstUpdate = SIZE_MAX);

/// `table` with the times of runs in place of those of ops alone: per signature, and for copies all
/// together where a step has 16 or more, the mean over its commands, recomputes included; and with
/// the rates that links had there, beside each other and beside compute, where a step copies 16 MiB
/// or more that way (copies below 256 KiB not counted). Of what issuing took `issueShare` counts
/// (taking times makes it slower); where it was not seen, it is by so much slower than alone as the
/// issuing of all runs that was seen (16 or more). `times` by command of `schedule`.
ir::CostTable correctTimes(ir::CostTable table, const ir::Graph& graph,
                           const ir::Schedule& schedule, const TypicalTimes& times,
                           double issueShare = 1);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MEASURE_RUN_TIMES_H_
