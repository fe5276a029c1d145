// SPDX-License-Identifier: Apache-2.0
//
// The one judgement of a plan that comes from a file, for whoever proves, runs or explains it: the
// verifier's rules on the schedule, and what the plan claims of itself, with the costs that it was
// made from where they are at hand. The same file with the same costs gets the same verdict
// everywhere. Not here: the graph and the target (planner/files/plan_file.h), what ops need on the
// machine that runs the plan (planner/files/plan_checks.h).
#ifndef STOWAGE_PLANNER_VERDICT_PLAN_VERDICT_H_
#define STOWAGE_PLANNER_VERDICT_PLAN_VERDICT_H_

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/verify/verify.h"
#include "planner/files/plan_file.h"
#include "planner/verdict/plan_costs.h"

namespace stowage::planner {

struct PlanVerdict {
  std::vector<ir::Violation> violations;  // by rule; none: the plan is proven
  std::string unchecked;  // why temporaries (V17) and times (V30) were not judged; "": they were
};

/// `graph` in the plan's order; `costs` as findPlansCosts says, or others to hold old claims
/// against. Errors: kPlanMismatch with the costs' file where they lack an op of the graph.
ir::Expected<PlanVerdict> judgePlan(const PlanFile& plan, const ir::Graph& graph,
                                    const PlansCosts& costs);

/// Errors: kViolation with the plan's file and a note "V10: ..." per violation; those of judgePlan.
ir::Error checkPlan(const PlanFile& plan, const ir::Graph& graph, const PlansCosts& costs);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_VERDICT_PLAN_VERDICT_H_
