// SPDX-License-Identifier: Apache-2.0
//
// A plan on a machine whose ops need more temporary memory than it was made for, such as one from
// an estimate. Rung by rung: all ops fit their regions, and the plan is run as it is; its decisions
// with other offsets; when that was asked for, a new plan for the same budget; an error with the
// ops that grew. What comes out is proven from its own bytes. There is no region to overflow to.
#ifndef STOWAGE_TOOLS_RUN_PLAN_LADDER_H_
#define STOWAGE_TOOLS_RUN_PLAN_LADDER_H_

#include <string>

#include "ir/base/error.h"
#include "tools/cli/verb.h"
#include "tools/files/load_files.h"
#include "tools/run/run_costs.h"

namespace stowage::tools {

struct LadderRequest {
  CostsHere& costs;     // its nodes become those of the plan's order
  bool replan = false;  // may everything be decided anew?
  const CommonFlags& flags;
};

/// Changes `plan` where it must be; says so. Errors: kViolation "V17: ..." with the ops that grew;
/// kInfeasible when no plan at all fits.
ir::Error fitToMachine(LoadedPlan& plan, const LadderRequest& request);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_PLAN_LADDER_H_
