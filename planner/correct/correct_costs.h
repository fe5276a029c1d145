// SPDX-License-Identifier: Apache-2.0
//
// From costs of ops alone and the times of steps to costs of ops inside steps. Work comes from when
// commands ran. Launch overhead comes from when they were launched. Taking times adds to it, so it
// is scaled: the schedule's predicted step becomes as long as steps without times were.
#ifndef STOWAGE_PLANNER_CORRECT_CORRECT_COSTS_H_
#define STOWAGE_PLANNER_CORRECT_CORRECT_COSTS_H_

#include <llvm/ADT/ArrayRef.h>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/costs/step_times.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "planner/correct/typical_times.h"

namespace stowage::planner {

/// `table` with times measured inside steps instead of those of ops alone. Per signature: the mean
/// over its commands, recomputes included; for copies one mean, if a step has 16 or more. Link
/// rates are those beside the other direction and beside compute, if a step copies 16 MiB or more
/// that way (copies below 256 KiB do not count). Launch overhead is multiplied by `launchShare`,
/// because timing adds to it. Unmeasured launch overhead is scaled like that of all measured
/// launches (16 or more). `times` by command of `schedule`.
ir::CostTable correctTimes(ir::CostTable table, const ir::Graph& graph,
                           const ir::Schedule& schedule, const TypicalTimes& times,
                           double launchShare = 1);

struct StepsOfPlan {
  const ir::Graph& graph;  // in the plan's order
  const ir::Schedule& schedule;
  const ir::Target& target;
  llvm::ArrayRef<ir::StepTimes> steps;
  ir::StepPace pace;
};

/// Rows that the steps say nothing of stay. Errors: those of resolveCosts.
ir::Expected<ir::CostTable> correctCosts(const ir::CostTable& alone, const StepsOfPlan& measured);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_CORRECT_CORRECT_COSTS_H_
