// SPDX-License-Identifier: Apache-2.0
//
// Costs around a run: how each op allocates on this machine before it, and how long each op took
// inside its steps after it.
#ifndef STOWAGE_TOOLS_RUN_RUN_COSTS_H_
#define STOWAGE_TOOLS_RUN_RUN_COSTS_H_

#include <llvm/ADT/ArrayRef.h>

#include <string>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/costs/step_times.h"
#include "tools/cli/verb.h"
#include "tools/files/load_files.h"

namespace stowage::tools {

/// What was measured on this machine, by signature and by node.
struct CostsHere {
  ir::CostTable table;
  ir::NodeCosts nodes;
  bool hasLinks = false;
};

struct CostsRequest {
  const LoadedPlan& plan;
  const std::string& costs;  // a file's name; "": nothing was measured before
  const CommonFlags& flags;
};

/// How each op allocates here.
ir::Expected<CostsHere> measureAllocations(const CostsRequest& request);

/// Whether copies may take as long as over the links of `costs`, which are those of file `path`.
/// Errors: kPlanMismatch for a link that would carry a step's bytes for hours.
ir::Error checkThrottle(const CostsHere& costs, const std::string& path);

/// A costs file corrected by the plan's steps (planner/correct/correct_costs.h); links are measured
/// where the costs have none.
ir::Expected<std::string> makeCorrectedCosts(const LoadedPlan& plan, const CostsHere& costs,
                                             llvm::ArrayRef<ir::StepTimes> steps,
                                             const ir::StepPace& pace);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_RUN_COSTS_H_
