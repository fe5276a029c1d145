// SPDX-License-Identifier: Apache-2.0
#include "planner/known_plan.h"

#include <algorithm>
#include <utility>

#include "planner/copy_schedule.h"
#include "planner/expand.h"

namespace stowage::planner {

std::optional<KnownPlan> tryActions(const GapTable& table, Actions actions, int64_t prefetch) {
  ir::Expected<Timetable> timetable =
      evaluateActions(table, actions, prefetch, PlacementEffort::kBestOrder);
  if (!timetable) {
    llvm::consumeError(timetable.takeError());
    return std::nullopt;
  }
  return KnownPlan{.height = timetable->deviceHeight.value(),
                   .hostHeight = timetable->hostHeight.value(),
                   .time = timetable->stepTime.value(),
                   .moved = (timetable->bytesOut + timetable->bytesIn).value(),
                   .prefetch = prefetch,
                   .actions = std::move(actions)};
}

std::vector<int64_t> computeNodeLoads(const GapTable& table, const Actions& actions) {
  ir::Expected<Expansion> expansion = expand(table, actions);
  if (!expansion) {
    llvm::consumeError(expansion.takeError());
    return {};
  }
  const std::vector<int64_t> loads = computeLoads(table, *expansion);
  std::vector<int64_t> result(table.nodeCount(), 0);
  int64_t highest = 0;
  for (size_t i = 1; i < loads.size(); ++i) {
    highest = std::max(highest, loads[i] + table.reservedBytes());
    if (expansion->steps[i].clone != 0) continue;
    result[expansion->steps[i].node.index()] = highest;
    highest = 0;
  }
  return result;
}

}  // namespace stowage::planner
