// SPDX-License-Identifier: Apache-2.0
//
// What the compute stream waited for in measured steps. Between two of its commands it may do
// nothing because bytes were on their way, because the next command was not enqueued yet (launch
// overhead), or because the device had not begun it yet (launch latency). Each such stretch is
// divided among these causes, in that order of precedence.
#ifndef STOWAGE_PLANNER_CORRECT_STEP_STALLS_H_
#define STOWAGE_PLANNER_CORRECT_STEP_STALLS_H_

#include <llvm/ADT/ArrayRef.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/units.h"
#include "ir/costs/step_times.h"
#include "ir/schedule/schedule.h"

namespace stowage::planner {

enum class StallCause : uint8_t {
  kDeviceToHost,    // bytes had to leave
  kHostToDevice,    // bytes had to arrive
  kLaunchOverhead,  // the launch thread had not enqueued it yet
  kLaunchLatency,   // nothing was missing: the device took that long to begin
  kRanks            // a collective was not over
};
inline constexpr size_t kStallCauseCount = 5;
const char* stallCauseName(StallCause cause);

struct Stall {
  ir::CommandId command;  // of compute: it began late
  ir::CommandId awaited;  // the copy or collective it waited for; invalid for other causes
  StallCause cause = StallCause::kLaunchLatency;
  Nanoseconds begin;  // by the clock of the times
  Nanoseconds time;
};

/// Of one step, in order of time. The first command's stall begins where the step before ended on
/// the compute stream: only with `before`, which may be null.
std::vector<Stall> findStalls(const ir::Schedule& schedule, const ir::StepTimes& step,
                              const ir::StepTimes* before);

/// Steps together: means per step.
struct StepSummary {
  int64_t steps = 0;
  Nanoseconds period;  // from one step's first compute command to the next step's; 0 for one step
  std::array<Nanoseconds, ir::kStreamCount> busy{};
  std::array<Nanoseconds, kStallCauseCount> stalls{};
  Nanoseconds launchOverhead;  // of the launch thread
};
StepSummary summarize(const ir::Schedule& schedule, llvm::ArrayRef<ir::StepTimes> steps);

/// How far copies that were to be hidden are: of the time of those that no command was `predicted`
/// to wait for, the share during which compute did not wait for them; 0 when it waited longer than
/// they took. Nothing without such copies.
std::optional<double> hiddenShare(const ir::Schedule& schedule,
                                  llvm::ArrayRef<ir::StepTimes> predicted,
                                  llvm::ArrayRef<ir::StepTimes> measured);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_CORRECT_STEP_STALLS_H_
