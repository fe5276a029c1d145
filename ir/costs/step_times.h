// SPDX-License-Identifier: Apache-2.0
//
// Measured steps as plain data: when the commands of a schedule ran inside steps, beside copies and
// with the caches that their neighbours left. Devices write it (runtime/executor/device.h), and
// planner/correct reads it. Not here: measuring, and what follows from the times.
#ifndef STOWAGE_IR_COSTS_STEP_TIMES_H_
#define STOWAGE_IR_COSTS_STEP_TIMES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/units.h"

namespace stowage::ir {

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

/// What steps took besides the times of their commands; nothing where a run had too few steps.
struct StepPace {
  std::optional<Nanoseconds> untimed;  // mean of the steps that ran before times were taken
  std::optional<Nanoseconds> scalars;  // to compute a step's scalars: CostTable::scalars
};

}  // namespace stowage::ir

#endif  // STOWAGE_IR_COSTS_STEP_TIMES_H_
