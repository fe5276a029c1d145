// SPDX-License-Identifier: Apache-2.0
#include "planner/search/known_plan.h"

#include <algorithm>
#include <utility>

#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/expand.h"
#include "planner/evaluate/launch_loads.h"

namespace stowage::planner {

namespace {

// Exact times are within this part of those simulated in bytes, but for rare exceptions, which are
// lost.
constexpr int64_t kSimulationError = 64;

KnownPlan summarise(const Timetable& timetable, Actions actions) {
  return {.peak = timetable.devicePeak.value(),
          .hostPeak = timetable.hostPeak.value(),
          .diskPeak = timetable.diskPeak.value(),
          .time = timetable.stepTime.value(),
          .moved = (timetable.bytesOut + timetable.bytesIn).value(),
          .prefetchLimit = timetable.prefetchLimit.value(),
          .actions = std::move(actions)};
}

}  // namespace

Tried tryActions(const GapTable& table, Actions actions, int64_t prefetchLimit,
                 const Useful& useful) {
  ir::Expected<Draft> draft = draftTimetable(table, actions, prefetchLimit);
  if (!draft) {
    llvm::consumeError(draft.takeError());
    return {};
  }
  Tried tried{.plan = {}, .peak = draft->device.leastPeak};
  const int64_t simulated = draft->simulatedTime();
  tried.isTooSlow = simulated - simulated / kSimulationError >= useful.time;
  if (tried.isTooSlow || tried.peak > useful.peak) return tried;
  Timetable timetable = finishTimetable(table, actions, prefetchLimit, std::move(*draft));
  tried.plan = summarise(timetable, std::move(actions));
  tried.peak = tried.plan->peak;
  tried.isTooSlow = tried.plan->time >= useful.time;
  tried.stalls = std::move(timetable.stallsAt);
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
    if (expansion->launches[i].recompute != 0) continue;
    result[expansion->launches[i].node.index()] = highest;
    highest = 0;
  }
  return result;
}

}  // namespace stowage::planner
