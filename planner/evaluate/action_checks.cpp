// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/action_checks.h"

#include <string>

namespace stowage::planner {

using ir::GapAction;

ir::Error checkActions(const GapTable& table, llvm::ArrayRef<GapAction> actions) {
  for (size_t g = 0; g < actions.size(); ++g) {
    const Gap& gap = table.gaps()[g];
    if (gap.mustHost) continue;
    const bool legal = actions[g] == GapAction::kKeep ||
                       (actions[g] == GapAction::kHost && gap.mayHost) ||
                       (actions[g] == GapAction::kDisk && gap.mayDisk) ||
                       (actions[g] == GapAction::kRecompute && gap.mayRecompute);
    if (legal) continue;
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "storage '" + table.problem().graph.storage(gap.storage).name +
                             "': found action '" + gapActionName(actions[g]) + "' for the gap [" +
                             std::to_string(gap.begin) + ", " + std::to_string(gap.end) +
                             "), which does not allow it");
  }
  return ir::success();
}

}  // namespace stowage::planner
