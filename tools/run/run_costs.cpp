// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_costs.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <utility>

#include "planner/correct/correct_costs.h"
#include "planner/files/cost_json.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/executor/run_accesses.h"
#include "runtime/torch/torch_version.h"
#include "tools/cli/progress.h"
#include "tools/run/run_checks.h"

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

/// Ops allocate by device and libraries: what another one says is no prediction here.
ir::Error checkMeasuredHere(const ir::Target& target, const planner::CostFile& costs,
                            const std::string& path) {
  if (costs.table.source != ir::CostSource::kMeasured) return ir::success();
  ir::Expected<std::string> here = runtime::costsDeviceHere(target);
  if (!here) return here.takeError();
  if (!costs.torchVersion.empty() && costs.torchVersion != runtime::torchVersion()) {
    return inInput(ir::makeError(ir::ErrorCode::kPlanMismatch,
                                 "measured with torch " + costs.torchVersion + ", this is torch " +
                                     runtime::torchVersion() + ": profile the step here"),
                   path);
  }
  if (costs.table.device == *here) return ir::success();
  return inInput(ir::makeError(ir::ErrorCode::kPlanMismatch,
                               "measured on '" + costs.table.device + "', this is '" + *here +
                                   "'; profile the step here and plan again"),
                 path);
}

/// The device is no measure for what runs on the host.
void addHostRows(const ir::Graph& graph, const ir::CostTable& from, ir::CostTable& table) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!graph.nodes()[i].onHost) continue;
    const std::string signature = ir::nodeSignature(graph, ir::NodeId(i));
    const auto row = from.bySignature.find(signature);
    if (row != from.bySignature.end()) table.bySignature.insert(*row);
  }
}

/// A copy's slowest link and longest latency that a throttled run waits for.
constexpr BytesPerSecond kSlowestLink(int64_t{1} << 20);
constexpr Nanoseconds kLongestLatency(1'000'000'000);

/// Of each measured op as many results as it makes, each an allocation of its own.
ir::Error checkResultsOf(const ir::Graph& graph, const ir::NodeCosts& costs,
                         const std::string& path) {
  for (size_t i = 0; i < costs.nodes.size(); ++i) {
    const ir::OpCost& cost = costs.nodes[i];
    if (cost.allocations < 0) continue;
    const ir::NodeId id(i);
    const size_t made = runtime::freshDeviceResults(graph, id).size();
    std::vector<int32_t> ordinals = cost.resultOrdinals;
    llvm::sort(ordinals);
    const bool isOnce = std::adjacent_find(ordinals.begin(), ordinals.end()) == ordinals.end();
    const bool isWithin =
        ordinals.empty() || (ordinals.front() >= 0 && ordinals.back() < cost.allocations);
    if (ordinals.size() == made && isOnce && isWithin) continue;
    return ir::makeError(ir::PlanError(ir::ErrorCode::kPlanMismatch,
                                       "row of " + graph.describeNode(id) + ": found " +
                                           std::to_string(ordinals.size()) + " results among " +
                                           std::to_string(cost.allocations) +
                                           " allocations, expected " + std::to_string(made) +
                                           ", each an allocation of its own")
                             .at({.file = path}));
  }
  return ir::success();
}

}  // namespace

ir::Error checkThrottle(const CostsHere& costs, const std::string& path) {
  const ir::LinkModel& links = costs.table.links;
  for (const auto& [name, link] :
       {std::pair("d2h", links.deviceToHost), std::pair("h2d", links.hostToDevice)}) {
    if (link.bandwidth >= kSlowestLink && link.latency <= kLongestLatency) continue;
    return ir::makeError(
        ir::PlanError(
            ir::ErrorCode::kPlanMismatch,
            std::string("links.") + name + ": found " + std::to_string(link.bandwidth.value()) +
                " bytes a second and " + std::to_string(link.latency.value()) +
                " ns of latency, expected at least " + std::to_string(kSlowestLink.value()) +
                " and at most " + std::to_string(kLongestLatency.value()) +
                " for --throttle-links: each copy would take as long")
            .at({.file = path}));
  }
  return ir::success();
}

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
    const ir::CostTable own = planner::costsForPlan(plan.file, plan.graph, known->table);
    remark(differentCosts(plan.file, request.costs, own), request.flags);
    if (ir::Error error = checkMeasuredHere(plan.file.target, *known, request.costs)) return error;
    options.known = std::move(known->table);
    addHostRows(plan.graph, own, options.known);
    costs.hasLinks = true;
  }
  ir::Expected<ir::CostTable> table =
      calibrateShowing(request.flags, plan.graph, std::move(options));
  if (!table) return ofStepFile(table.takeError(), stepPath(plan));
  ir::Expected<ir::NodeCosts> nodes =
      ir::resolveCosts(plan.graph, *table, plan.file.schedule.graphMode);
  if (!nodes) return nodes.takeError();
  if (!request.costs.empty()) {
    if (ir::Error error = checkResultsOf(plan.graph, *nodes, request.costs)) return error;
  }
  costs.table = std::move(*table);
  costs.nodes = std::move(*nodes);
  return costs;
}

ir::Expected<std::string> makeCorrectedCosts(const LoadedPlan& plan, const CostsHere& costs,
                                             llvm::ArrayRef<ir::StepTimes> steps,
                                             const ir::StepPace& pace) {
  ir::CostTable table = costs.table;
  if (!costs.hasLinks) {
    ir::Expected<ir::LinkModel> links = runtime::measureLinks(plan.file.target);
    if (!links) return links.takeError();
    table.links = *links;
  }
  ir::Expected<ir::CostTable> corrected =
      planner::correctCosts(table, {plan.graph, plan.file.schedule, plan.file.target, steps, pace});
  if (!corrected) return corrected.takeError();
  const planner::CostFile file = {.stowageVersion = STOWAGE_VERSION,
                                  .torchVersion = runtime::torchVersion(),
                                  .table = std::move(*corrected)};
  std::string text;
  llvm::raw_string_ostream os(text);
  if (ir::Error error = planner::writeCosts(file, os)) return error;
  return os.str();
}

}  // namespace stowage::tools
