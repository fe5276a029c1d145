// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/estimates.h"

#include <fmt/format.h>
#include <llvm/Support/FileSystem.h>

#include <cmath>
#include <optional>

#include "planner/targets/roofline.h"
#include "tools/bench/step_files.h"

namespace stowage::tools {

namespace {

ir::Expected<ir::Target> profileOf(const ir::CostTable& costs) {
  for (const ir::Target& target : planner::targetProfiles()) {
    if (planner::namesProfile(costs.device, target.profile)) return target;
  }
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "no target profile for costs of '" + costs.device + "'");
}

ir::Expected<bool> printRow(const std::string& name, const EstimateFolders& folders,
                            const std::string& costsPath, llvm::raw_ostream& os) {
  ir::Expected<ir::Graph> graph = readStep(folders.steps + "/" + name + ".stow");
  if (!graph) return graph.takeError();
  ir::Expected<ir::CostTable> costs = readStepCosts(costsPath);
  if (!costs) return costs.takeError();
  ir::Expected<ir::Target> target = profileOf(*costs);
  if (!target) return target.takeError();
  ir::Expected<ir::NodeCosts> measured = ir::resolveCosts(*graph, *costs);
  if (!measured) return measured.takeError();
  ir::Expected<ir::NodeCosts> estimated =
      ir::resolveCosts(*graph, planner::rooflineCosts(*graph, *target));
  if (!estimated) return estimated.takeError();
  const auto ms = [](Nanoseconds time) { return static_cast<double>(time.value()) / 1e6; };
  const double error = 100 * (ms(estimated->totalTime()) / ms(measured->totalTime()) - 1);
  const std::optional<int> bar = planner::estimateErrorPercent(*target);
  const bool isWithin = bar && std::abs(error) <= *bar;
  os << fmt::format("{:<24} {:<8} {:9.2f} ms {:9.2f} ms {:+7.1f} %  {}\n", name, target->profile,
                    ms(estimated->totalTime()), ms(measured->totalTime()), error,
                    isWithin ? "within" : "outside");
  return isWithin;
}

}  // namespace

ir::Expected<bool> printEstimates(const EstimateFolders& folders, llvm::raw_ostream& os) {
  os << "step                     profile     estimated     measured     error  bar\n";
  bool areAllWithin = true;
  for (const std::string& name : listSteps(folders.steps)) {
    for (const std::string& costs : folders.costs) {
      const std::string path = fmt::format("{}/{}.json", costs, name);
      if (!llvm::sys::fs::exists(path)) continue;
      ir::Expected<bool> isWithin = printRow(name, folders, path, os);
      if (!isWithin) return isWithin.takeError();
      areAllWithin = areAllWithin && *isWithin;
    }
  }
  return areAllWithin;
}

}  // namespace stowage::tools
