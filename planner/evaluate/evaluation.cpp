// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/evaluation.h"

#include <algorithm>
#include <utility>

#include "planner/evaluate/launch_order.h"
#include "planner/evaluate/prefetch_order.h"
#include "planner/evaluate/timetable_writer.h"

namespace stowage::planner {

namespace {

Draft draftOf(const GapTable& table, Expansion expansion, int64_t prefetchLimit, bool isBeside) {
  Draft draft;
  draft.expansion = std::move(expansion);
  draft.copies = scheduleCopies(table, draft.expansion, prefetchLimit - table.reservedBytes());
  draft.copies.isBesideLink = isBeside;
  draft.order = findEnqueueOrder(table, draft.expansion, draft.copies);
  draft.device = collectDeviceItems(table, draft.expansion, draft.order);
  return draft;
}

}  // namespace

ir::Expected<Draft> draftTimetable(const GapTable& table, const Actions& actions,
                                   int64_t prefetchLimit) {
  ir::Expected<Expansion> inOrder = expand(table, actions);
  if (!inOrder) return inOrder.takeError();
  if (!table.problem().costs.collectiveWork.empty()) {
    const int64_t limit = prefetchLimit - table.reservedBytes();
    ir::Expected<Expansion> beside =
        expand(table, actions, orderAroundCollectives(table, *inOrder, limit));
    if (!beside) return beside.takeError();
    Draft draft = draftOf(table, std::move(*beside), prefetchLimit, /*isBeside=*/true);
    if (draft.device.leastPeak <= prefetchLimit) return draft;
  }
  // Where bytes are scarce, what collectives have is free for the next launch, which then waits.
  return draftOf(table, std::move(*inOrder), prefetchLimit, /*isBeside=*/false);
}

Timetable finishTimetable(const GapTable& table, const Actions& actions, int64_t prefetchLimit,
                          Draft draft) {
  const int64_t goal = prefetchLimit >= INT64_MAX / 8 ? 0 : prefetchLimit;
  AddressPlan addresses = planAddresses(table, draft.device, draft.order.period, goal);
  if (putOff(table, draft.expansion, draft.order, addresses.delays, draft.copies)) {
    draft.order = findEnqueueOrder(table, draft.expansion, draft.copies);
  }
  planHostAddresses(table, draft.order, addresses);
  const DiskCopies disk =
      addDiskCopies(table, draft.expansion, addresses.hostPeak, draft.order.commands);
  Timetable timetable =
      writeTimetable({table, draft.expansion, draft.copies, draft.order, addresses, disk, actions});
  timetable.prefetchLimit = Bytes(prefetchLimit);
  return timetable;
}

ir::Expected<Timetable> evaluateActions(const GapTable& table, const Actions& actions,
                                        int64_t prefetchLimit) {
  ir::Expected<Draft> draft = draftTimetable(table, actions, prefetchLimit);
  if (!draft) return draft.takeError();
  return finishTimetable(table, actions, prefetchLimit, std::move(*draft));
}

int64_t lowerPrefetchLimit(int64_t prefetchLimit, int64_t budget, int64_t peak) {
  constexpr int64_t kParts = 32;
  if (prefetchLimit > budget) return budget;
  return prefetchLimit - std::max(peak - budget, budget / kParts + 1);
}

namespace {

// What goes to disk in one gap does so in all.
ir::Error checkDisk(const GapTable& table, const Actions& actions) {
  std::vector<bool> onHost(table.problem().graph.storages().size(), false);
  for (size_t g = 0; g < actions.size(); ++g) {
    if (actions[g] == ir::GapAction::kHost) onHost[table.gaps()[g].storage.index()] = true;
  }
  for (size_t g = 0; g < actions.size(); ++g) {
    const ir::StorageId storage = table.gaps()[g].storage;
    if (actions[g] != ir::GapAction::kDisk || !onHost[storage.index()]) continue;
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "storage '" + table.problem().graph.storage(storage).name +
                             "': found both 'host' and 'disk' for its gaps, expected one of them");
  }
  return ir::success();
}

}  // namespace

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
  if (ir::Error error = checkDisk(table, actions)) return error;
  return actions;
}

}  // namespace stowage::planner
