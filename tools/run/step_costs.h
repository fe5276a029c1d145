// SPDX-License-Identifier: Apache-2.0
//
// From costs of ops alone and the times of steps to costs of ops inside steps. Work comes from when
// commands ran. Launch overhead comes from when they were launched. Taking times adds to it, so it
// is scaled: the schedule's predicted step becomes as long as steps without times were.
#ifndef STOWAGE_TOOLS_RUN_STEP_COSTS_H_
#define STOWAGE_TOOLS_RUN_STEP_COSTS_H_

#include <llvm/ADT/ArrayRef.h>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "runtime/measure/run_times.h"
#include "tools/training/step_pace.h"

namespace stowage::tools {

struct StepsOfPlan {
  const ir::Graph& graph;  // in the plan's order
  const ir::Schedule& schedule;
  const ir::Target& target;
  llvm::ArrayRef<runtime::StepTimes> steps;
  StepPace pace;
};

/// Rows that the steps say nothing of stay. Errors: those of resolveCosts.
ir::Expected<ir::CostTable> correctCosts(const ir::CostTable& alone, const StepsOfPlan& measured);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_STEP_COSTS_H_
