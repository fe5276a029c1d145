// SPDX-License-Identifier: Apache-2.0
#include "planner/search/fixed_actions.h"

#include "planner/flow/cut_points.h"

namespace stowage::planner {

namespace {

using ir::GapAction;

// What never comes to the device is on the host without being asked.
bool isAlwaysSo(const GapTable& table, const Pin& pin) {
  const auto& storages = table.problem().graph.storages();
  for (size_t i = 0; i < storages.size() && pin.action == GapAction::kHost; ++i) {
    if (table.isHostOnly(ir::StorageId(i)) && matchesGlob(pin.pattern, storages[i].name))
      return true;
  }
  return false;
}

/// Of "keep", the first storage that matches and gets its bytes on the host; "": none.
std::string findWrittenOnHost(const GapTable& table, const Pin& pin) {
  const auto& storages = table.problem().graph.storages();
  for (size_t i = 0; i < storages.size() && pin.action == GapAction::kKeep; ++i) {
    const bool matches = storages[i].persistent && matchesGlob(pin.pattern, storages[i].name);
    if (matches && table.isWrittenOnHost(ir::StorageId(i))) return storages[i].name;
  }
  return "";
}

/// With segments everything is fixed: what is not recomputed is kept.
void fixSegments(const GapTable& table, FixedActions& fixed) {
  const int32_t segments = table.problem().allowed.segments;
  if (segments == 0) return;
  const std::vector<bool> dropped = chooseSegments(table, segments);
  for (size_t g = 0; g < dropped.size(); ++g) {
    fixed.isFixed[g] = true;
    if (dropped[g]) fixed.actions[g] = GapAction::kRecompute;
  }
}

/// No decision of anybody's.
void fixHostWrites(const GapTable& table, FixedActions& fixed) {
  for (size_t g = 0; g < table.gaps().size(); ++g) {
    if (!table.gaps()[g].mustHost) continue;
    fixed.actions[g] = GapAction::kHost;
    fixed.isFixed[g] = true;
  }
}

}  // namespace

ir::Expected<FixedActions> fixActions(const GapTable& table) {
  FixedActions fixed{.actions = Actions(table.gaps().size(), GapAction::kKeep),
                     .isFixed = std::vector<bool>(table.gaps().size(), false),
                     .isPinned = std::vector<bool>(table.gaps().size(), false)};
  fixSegments(table, fixed);
  fixHostWrites(table, fixed);
  const Problem& problem = table.problem();
  for (const Pin& pin : problem.pins) {
    const std::string onHost = findWrittenOnHost(table, pin);
    if (!onHost.empty()) {
      return ir::makeError(ir::ErrorCode::kInvalidArgument,
                           "pin '" + describePin(pin) + "': found '" + onHost +
                               "', which an update on the host writes there");
    }
    bool isPossible = pin.action == GapAction::kKeep || isAlwaysSo(table, pin);
    for (size_t g = 0; g < table.gaps().size(); ++g) {
      const Gap& gap = table.gaps()[g];
      if (!matchesGlob(pin.pattern, problem.graph.storage(gap.storage).name)) continue;
      if (gap.mustHost) {
        isPossible = isPossible || pin.action == GapAction::kHost;
        continue;
      }
      const bool possible = pin.action == GapAction::kKeep ||
                            (pin.action == GapAction::kHost && gap.mayHost && gap.live) ||
                            (pin.action == GapAction::kDisk && gap.mayDisk && gap.live) ||
                            (pin.action == GapAction::kRecompute && gap.mayRecompute && gap.live);
      if (!possible) continue;
      isPossible = true;
      fixed.actions[g] = pin.action;
      fixed.isFixed[g] = fixed.isPinned[g] = true;
    }
    if (isPossible) continue;
    const bool lacksDisk = pin.action == GapAction::kDisk && problem.limits.disk == Bytes(0);
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        "pin '" + describePin(pin) + "': found no gap in which that is possible" +
            (lacksDisk ? ": the plan has no disk, expected a number of bytes on one" : ""));
  }
  ir::Expected<Actions> rows = actionsOf(table, {.rows = problem.pinnedRows});
  if (!rows) return rows.takeError();
  for (const ir::DecisionRow& row : problem.pinnedRows) {
    for (size_t k = 0; k < table.gapCount(row.storage); ++k) {
      const size_t g = table.gapIndex(row.storage, k);
      if (table.gaps()[g].begin != row.gapBegin) continue;
      fixed.actions[g] = row.action;
      fixed.isFixed[g] = fixed.isPinned[g] = true;
    }
  }
  return fixed;
}

}  // namespace stowage::planner
