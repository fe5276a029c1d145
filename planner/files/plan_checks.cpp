// SPDX-License-Identifier: Apache-2.0
#include "planner/files/plan_checks.h"

#include <llvm/ADT/ArrayRef.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace stowage::planner {

namespace {

struct GrownOp {
  Bytes need;
  ir::CommandId command;
};

/// The largest first, one per node: a recompute needs what its original does.
std::vector<GrownOp> findGrownOps(const PlanFile& plan, const ir::NodeCosts& costs) {
  std::vector<GrownOp> grown;
  std::vector<bool> isFound(costs.nodes.size(), false);
  for (size_t i = 0; i < plan.schedule.commands.size(); ++i) {
    const ir::Command& command = plan.schedule.commands[i];
    if (command.kind != ir::CommandKind::kRun || isFound[command.node.index()]) continue;
    const Bytes need = costs.nodes[command.node.index()].temporary;
    if (need <= command.temp.bytes) continue;
    isFound[command.node.index()] = true;
    grown.push_back({need, ir::CommandId(i)});
  }
  std::stable_sort(grown.begin(), grown.end(),
                   [](const GrownOp& a, const GrownOp& b) { return a.need > b.need; });
  return grown;
}

}  // namespace

size_t countGrownOps(const PlanFile& plan, const ir::NodeCosts& costs) {
  return findGrownOps(plan, costs).size();
}

ir::Error checkPlanTemporaries(const PlanFile& plan, const ir::Graph& graph,
                               const ir::NodeCosts& costs) {
  constexpr size_t kShown = 8;
  const std::vector<GrownOp> grown = findGrownOps(plan, costs);
  if (grown.empty()) return ir::success();
  ir::PlanError error(ir::ErrorCode::kViolation,
                      "V17: " + std::to_string(grown.size()) +
                          " ops need more temporary memory on this machine than the plan has for "
                          "them; 'stowage profile' measures it, for a new plan with --costs");
  for (const GrownOp& op : llvm::ArrayRef<GrownOp>(grown).take_front(kShown)) {
    const ir::Command& command = plan.schedule.command(op.command);
    error.note(graph.describeNode(command.node) + ": needs " + formatBytes(op.need) + ", has " +
               formatBytes(command.temp.bytes));
  }
  if (grown.size() > kShown) {
    error.note("and " + std::to_string(grown.size() - kShown) + " more");
  }
  return ir::makeError(std::move(error));
}

}  // namespace stowage::planner
