// SPDX-License-Identifier: Apache-2.0
#include "passes/lower.h"

#include <utility>

#include "passes/manage/pass_manager.h"
#include "passes/pipeline.h"

namespace stowage::passes {

ir::Expected<ir::Schedule> lowerTimetable(const ir::Graph& graph, const ir::Target& target,
                                          const planner::Timetable& timetable, Bytes budget,
                                          ir::GraphMode graphMode) {
  PassState state{.graph = graph,
                  .schedule = std::nullopt,
                  .target = target,
                  .timetable = timetable,
                  .decisions = timetable.decisions};
  const PassManager manager(makeLoweringPasses({.budget = budget, .graphMode = graphMode}));
  ir::Expected<std::vector<PassRecord>> records = manager.run(state);
  if (!records) return records.takeError();
  return std::move(*state.schedule);
}

}  // namespace stowage::passes
