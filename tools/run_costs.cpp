// SPDX-License-Identifier: Apache-2.0
#include "tools/run_costs.h"

#include <llvm/Support/raw_ostream.h>

#include <utility>

#include "planner/cost_json.h"
#include "runtime/calibrate.h"
#include "runtime/run_times.h"
#include "runtime/torch_version.h"
#include "tools/progress.h"
#include "tools/run_checks.h"

namespace stowage::tools {

namespace {

ir::Expected<ir::CostTable> calibrateShowing(const CommonFlags& flags, const ir::Graph& graph,
                                             runtime::CalibrateOptions options) {
  Progress progress(!flags.quiet);
  options.report = [&](size_t done, size_t all) {
    progress.show("measuring memory of ops", done, all);
  };
  return runtime::calibrate(graph, options);
}

}  // namespace

ir::Expected<CostsHere> measureAllocations(const CostsRequest& request) {
  const LoadedPlan& plan = request.plan;
  CostsHere costs;
  runtime::CalibrateOptions options;
  options.device = plan.file.target.device;
  options.intraOpThreads = plan.file.target.intraOpThreads;
  options.alignBytes = plan.file.target.alignBytes;
  options.deterministic = plan.file.target.deterministic;
  options.runs = 0;
  if (!request.costs.empty()) {
    ir::Expected<planner::CostFile> known = loadCosts(request.costs);
    if (!known) return known.takeError();
    const std::string different = differentCosts(plan.file, request.costs, known->table);
    if (!different.empty()) remark(different, request.flags);
    options.known = std::move(known->table);
    costs.hasLinks = true;
  }
  ir::Expected<ir::CostTable> table =
      calibrateShowing(request.flags, plan.graph, std::move(options));
  if (!table) return table.takeError();
  ir::Expected<ir::NodeCosts> nodes = ir::resolveCosts(plan.graph, *table);
  if (!nodes) return nodes.takeError();
  costs.table = std::move(*table);
  costs.nodes = std::move(*nodes);
  return costs;
}

ir::Expected<std::string> makeCorrectedCosts(const LoadedPlan& plan, const CostsHere& costs,
                                             llvm::ArrayRef<std::optional<Nanoseconds>> times) {
  ir::CostTable table = runtime::correctTimes(costs.table, plan.graph, plan.file.schedule, times);
  if (!costs.hasLinks) {
    ir::Expected<ir::LinkModel> links = runtime::measureLinks(plan.file.target.device);
    if (!links) return links.takeError();
    table.links = *links;
  }
  const planner::CostFile file = {.stowageVersion = STOWAGE_VERSION,
                                  .torchVersion = runtime::torchVersion(),
                                  .table = std::move(table)};
  std::string text;
  llvm::raw_string_ostream os(text);
  if (ir::Error error = planner::writeCosts(file, os)) return error;
  return os.str();
}

}  // namespace stowage::tools
