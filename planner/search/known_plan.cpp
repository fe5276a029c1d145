// SPDX-License-Identifier: Apache-2.0
#include "planner/search/known_plan.h"

#include <algorithm>
#include <utility>

#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/expand.h"

namespace stowage::planner {

namespace {

// Exact times are within this part of those simulated in bytes, but for rare exceptions, which are
// lost.
constexpr int64_t kSimulationError = 64;

KnownPlan summarise(const Timetable& timetable, Actions actions) {
  return {.height = timetable.deviceHeight.value(),
          .hostHeight = timetable.hostHeight.value(),
          .time = timetable.stepTime.value(),
          .moved = (timetable.bytesOut + timetable.bytesIn).value(),
          .prefetch = timetable.prefetch.value(),
          .actions = std::move(actions)};
}

}  // namespace

Tried tryActions(const GapTable& table, Actions actions, int64_t prefetch, const Useful& useful) {
  ir::Expected<Draft> draft = draftTimetable(table, actions, prefetch);
  if (!draft) {
    llvm::consumeError(draft.takeError());
    return {};
  }
  Tried tried{.plan = {}, .height = draft->device.leastHeight};
  const int64_t simulated = draft->simulatedTime();
  tried.isTooSlow = simulated - simulated / kSimulationError >= useful.time;
  if (tried.isTooSlow || tried.height > useful.height) return tried;
  const Timetable timetable = finishTimetable(table, actions, prefetch, std::move(*draft));
  tried.plan = summarise(timetable, std::move(actions));
  tried.height = tried.plan->height;
  tried.isTooSlow = tried.plan->time >= useful.time;
  return tried;
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
