// SPDX-License-Identifier: Apache-2.0
//
// Fits a plan to a machine whose ops need more temporary memory than planned. It tries in order:
// run the plan as it is; place its decisions at other offsets; with `replan`, make a new plan for
// the same budget; return an error with the ops that grew. The result is verified from its own
// bytes. There is no overflow region.
#ifndef STOWAGE_TOOLS_RUN_PLAN_LADDER_H_
#define STOWAGE_TOOLS_RUN_PLAN_LADDER_H_

#include <string>

#include "ir/base/error.h"
#include "tools/cli/verb.h"
#include "tools/files/load_files.h"
#include "tools/run/run_costs.h"

namespace stowage::tools {

struct LadderRequest {
  CostsHere& costs;     // node costs are reordered to the plan's order
  bool replan = false;  // whether a new plan may be made
  const CommonFlags& flags;
};

/// Changes `plan` where it must be; says so. Errors: kViolation "V17: ..." with the ops that grew;
/// kInfeasible when no plan at all fits.
ir::Error fitToMachine(LoadedPlan& plan, const LadderRequest& request);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_PLAN_LADDER_H_
