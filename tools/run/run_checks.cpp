// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_checks.h"

#include <algorithm>

#include "ir/graph/liveness.h"
#include "runtime/disk/disk_folder.h"
#include "runtime/machine/host_need.h"
#include "runtime/torch/torch_version.h"
#include "tools/machine/this_machine.h"

namespace stowage::tools {

namespace {

/// What this machine lacks for a plan.
ir::Error ofMachine(ir::Error lack, const planner::PlanFile& plan) {
  const ir::PlanError found = ir::takePayload(std::move(lack));
  ir::PlanError problem(ir::ErrorCode::kEnvironment, "V3: " + found.text());
  problem.at({.file = plan.path}).notesOf(found);
  return ir::makeError(std::move(problem));
}

/// Both arenas are mapped and filled before the first step: what is not there ends the process.
ir::Error checkMemory(const planner::PlanFile& plan) {
  ir::Error lack = runtime::checkHostMemory(runtime::hostNeedOf(plan.schedule, plan.target.device));
  return lack ? ofMachine(std::move(lack), plan) : ir::success();
}

/// Costs that were measured with another libtorch say nothing about how ops allocate in this one.
ir::Error checkCostsVersion(const planner::PlanFile& plan) {
  if (plan.torchVersion.empty() || plan.torchVersion == runtime::torchVersion()) {
    return ir::success();
  }
  return ir::makeError(ir::PlanError(ir::ErrorCode::kEnvironment,
                                     "V3: the plan was made from costs of torch " +
                                         plan.torchVersion + ", this is torch " +
                                         runtime::torchVersion() + ": profile and plan again")
                           .at({.file = plan.path}));
}

}  // namespace

ir::Error checkMachine(const planner::PlanFile& plan, int threads) {
  ir::Expected<ir::Target> machine = describeThisMachine(plan.target, threads);
  if (!machine) return machine.takeError();
  if (ir::Error error = checkMemory(plan)) return error;
  ir::Error error = planner::checkPlanTarget(plan, *machine);
  if (!error) return checkCostsVersion(plan);
  return ofMachine(std::move(error), plan);
}

ir::Error checkComparable(const planner::PlanFile& plan) {
  const bool isOther = plan.target.device == ir::DeviceKind::kCuda && plan.graph.hostUpdates > 0;
  if (!isOther) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "--compare-unplanned: the plan runs updates on the host, whose kernels give "
                       "other bits than the GPU's: expected a plan made without --allow host-step");
}

ir::Error checkDiskFolder(const planner::PlanFile& plan, const std::string& folder) {
  const Bytes disk = plan.schedule.arenaBytes(ir::Space::kDisk);
  if (disk == Bytes(0)) return ir::success();
  if (!folder.empty()) return runtime::checkIsDisk(folder);
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "the plan keeps " + formatBytes(disk) +
                           " on disk: expected --disk DIR, a folder on a disk with so much room");
}

std::string describeUnusedDisk(const planner::PlanFile& plan, const std::string& folder) {
  if (folder.empty() || plan.schedule.arenaBytes(ir::Space::kDisk) > Bytes(0)) return "";
  return "the plan keeps nothing on disk, so --disk has no use: 'stowage plan --disk BYTES' makes "
         "plans that do where host memory is scarce";
}

ir::Error checkOpMemory(const std::string& path, const ir::Graph& graph) {
  const runtime::UsableMemory usable = runtime::usableMemory();
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    Bytes touched;
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      touched += graph.storage(access.storage).bytes;
    }
    if (touched <= usable.bytes) continue;
    return ir::makeError(ir::PlanError(ir::ErrorCode::kEnvironment,
                                       graph.describeNode(ir::NodeId(i)) + " touches " +
                                           formatBytes(touched) + " at once, " + usable.source)
                             .at({.file = path}));
  }
  return ir::success();
}

ir::Error checkUnplannedMemory(const ir::Graph& graph, const ir::Target& target) {
  const std::vector<int64_t> bytes =
      ir::computeKeepAllBytes(graph, target.alignBytes, std::vector<Bytes>(graph.nodes().size()));
  const Bytes needed(bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()));
  const runtime::UsableMemory usable = runtime::usableMemory();
  if (needed <= usable.bytes) return ir::success();
  return ir::makeError(ir::ErrorCode::kEnvironment, "without a plan the step needs " +
                                                        formatBytes(needed) + ", " + usable.source);
}

}  // namespace stowage::tools
