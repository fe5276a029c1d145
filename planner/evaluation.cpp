// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluation.h"

#include "planner/address_plan.h"
#include "planner/copy_schedule.h"
#include "planner/expand.h"
#include "planner/fetch_order.h"
#include "planner/issue_order.h"
#include "planner/timetable_writer.h"

namespace stowage::planner {

ir::Expected<Timetable> evaluateActions(const GapTable& table, const Actions& actions,
                                        int64_t budget, PlacementEffort effort) {
  ir::Expected<Expansion> expansion = expand(table, actions);
  if (!expansion) return expansion.takeError();
  CopySchedule copies = scheduleCopies(table, *expansion, budget - table.reservedBytes());
  const int64_t goal = budget >= INT64_MAX / 8 ? 0 : budget;
  IssueOrder order = orderIssues(table, *expansion, copies);
  AddressPlan addresses = planAddresses(table, *expansion, order, effort, goal);
  if (putOff(table, *expansion, order, addresses.delays, copies)) {
    order = orderIssues(table, *expansion, copies);
  }
  planHostAddresses(table, order, effort, addresses);
  Timetable timetable = writeTimetable({table, *expansion, copies, order, addresses, actions});
  timetable.prefetch = Bytes(budget);
  return timetable;
}

ir::Expected<Actions> actionsOf(const GapTable& table, const Decisions& decisions) {
  Actions actions(table.gaps().size(), ir::GapAction::kKeep);
  for (const ir::DecisionRow& row : decisions.rows) {
    size_t found = table.gaps().size();
    const bool isStorage =
        row.storage.isValid() && row.storage.index() < table.problem().graph.storages().size();
    for (size_t k = 0; isStorage && k < table.gapCount(row.storage); ++k) {
      const Gap& gap = table.gaps()[table.gapIndex(row.storage, k)];
      if (gap.begin == row.gapBegin && gap.end == row.gapEnd)
        found = table.gapIndex(row.storage, k);
    }
    if (found == table.gaps().size()) {
      const std::string name =
          isStorage ? table.problem().graph.storage(row.storage).name : "of no known number";
      return ir::makeError(ir::ErrorCode::kInvalidArgument,
                           "storage '" + name + "': found a decision for [" +
                               std::to_string(row.gapBegin) + ", " + std::to_string(row.gapEnd) +
                               "), which is none of its gaps");
    }
    actions[found] = row.action;
  }
  return actions;
}

}  // namespace stowage::planner
