// SPDX-License-Identifier: Apache-2.0
//
// A plan's decisions as a schedule once more, with other costs or after they were edited: nothing
// is decided here.
#ifndef STOWAGE_TOOLS_PLANNING_LOWERED_PLAN_H_
#define STOWAGE_TOOLS_PLANNING_LOWERED_PLAN_H_

#include "ir/base/error.h"
#include "passes/plan_step.h"
#include "tools/files/load_files.h"
#include "tools/planning/planning_flags.h"

namespace stowage::tools {

/// Of `inputs` the target, the costs and the limit of host memory count; graph, rows and budget are
/// the plan's. Errors: kInfeasible with the bytes that the decisions need, of the device or of the
/// host; those of makeProblem.
ir::Expected<passes::PlannedStep> lowerAgain(const LoadedPlan& plan, const PlanningInputs& inputs);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_LOWERED_PLAN_H_
