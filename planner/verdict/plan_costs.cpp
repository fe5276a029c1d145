// SPDX-License-Identifier: Apache-2.0
#include "planner/verdict/plan_costs.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/Support/Path.h>

#include <utility>

#include "planner/targets/arranged_costs.h"
#include "planner/targets/roofline.h"

namespace stowage::planner {

std::string seenFrom(const std::string& planPath, const std::string& file) {
  if (!llvm::sys::path::is_relative(file)) return file;
  llvm::SmallString<256> path(llvm::sys::path::parent_path(planPath));
  llvm::sys::path::append(path, file);
  return path.str().str();
}

std::string plansCostsPath(const PlanFile& plan) {
  return plan.costs.file.empty() ? "" : seenFrom(plan.path, plan.costs.file);
}

ir::CostTable costsForPlan(const PlanFile& plan, const ir::Graph& graph, ir::CostTable table) {
  if (!plan.graph.hasOtherOps()) return table;
  return findArrangedCosts(graph, plan.target, table).table;
}

bool isMadeFrom(const PlanFile& plan, const ir::CostTable& costs) {
  return costsFingerprint(costs) == plan.costs.fingerprint;
}

ir::Expected<PlansCosts> findPlansCosts(const PlanFile& plan, const ir::Graph& graph,
                                        LoadCosts load) {
  PlansCosts costs{.file = std::nullopt, .path = plansCostsPath(plan), .missing = ""};
  std::string where = costs.path;
  CostFile found;
  if (!costs.path.empty()) {
    ir::Expected<std::optional<CostFile>> file = load(costs.path);
    if (!file) return file.takeError();
    if (!*file) {
      costs.missing = "and there is no " + costs.path;
      return costs;
    }
    found = std::move(**file);
    found.table = costsForPlan(plan, graph, std::move(found.table));
  } else {
    if (plan.costs.source != ir::CostSource::kRoofline) {
      costs.missing = "and does not say where they are";
      return costs;
    }
    where = "the estimate of profile '" + plan.target.profile + "'";
    found.table = rooflineCosts(graph, plan.target);
  }
  if (isMadeFrom(plan, found.table)) {
    costs.file = std::move(found);
  } else {
    costs.missing = "with fingerprint " + plan.costs.fingerprint + ", and " + where + " has " +
                    costsFingerprint(found.table);
  }
  return costs;
}

}  // namespace stowage::planner
