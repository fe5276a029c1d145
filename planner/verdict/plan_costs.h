// SPDX-License-Identifier: Apache-2.0
//
// The costs that a plan was made from, as far as they are at hand: the table where the plan says
// that it is, or, of a profile's estimate, recomputed. A table counts as the plan's only with the
// fingerprint that the plan states. Not here: reading files, which the caller does.
#ifndef STOWAGE_PLANNER_VERDICT_PLAN_COSTS_H_
#define STOWAGE_PLANNER_VERDICT_PLAN_COSTS_H_

#include <llvm/ADT/STLFunctionalExtras.h>

#include <optional>
#include <string>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "planner/files/cost_json.h"
#include "planner/files/plan_file.h"

namespace stowage::planner {

struct PlansCosts {
  std::optional<CostFile> file;
  std::string path;     // "": of the profile's estimate
  std::string missing;  // why there is no file: the end of a sentence about the plan's costs
};

/// A file that a plan names, which may be relative to the plan's folder.
std::string seenFrom(const std::string& planPath, const std::string& file);
/// Where the plan says that its costs are; "" when it does not.
std::string plansCostsPath(const PlanFile& plan);

/// What a plan in row blocks or with updates on the host was made from, if `table` has the costs of
/// its step: costs that are not in the table are found as the planner finds them. Of other plans
/// the table itself.
ir::CostTable costsForPlan(const PlanFile& plan, const ir::Graph& graph, ir::CostTable table);
/// Are these the costs that the plan was made from?
bool isMadeFrom(const PlanFile& plan, const ir::CostTable& costs);

/// The table in the file of that name; nothing where there is none.
using LoadCosts =
    llvm::function_ref<ir::Expected<std::optional<CostFile>>(const std::string& path)>;
/// `graph` in the plan's order. Errors: those of `load`.
ir::Expected<PlansCosts> findPlansCosts(const PlanFile& plan, const ir::Graph& graph,
                                        LoadCosts load);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_VERDICT_PLAN_COSTS_H_
