// SPDX-License-Identifier: Apache-2.0
#include "passes/lowering/insert_waits.h"

#include "planner/evaluate/dependencies.h"

namespace stowage::passes {

ir::Expected<PassReport> InsertWaits::run(PassState& state) const {
  ir::Schedule& schedule = *state.schedule;
  const planner::Dependencies needed = planner::computeDependencies(
      state.graph, state.target, schedule.residencies, schedule.boundary, schedule.commands);
  int64_t waits = 0;
  int64_t boundary = 0;
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    ir::Command& command = schedule.commands[i];
    command.wait.assign(needed.wait[i].begin(), needed.wait[i].end());
    // All streams of a joined step end together: nothing runs on into the next.
    command.prev.clear();
    if (!schedule.joined) command.prev.assign(needed.prev[i].begin(), needed.prev[i].end());
    waits += static_cast<int64_t>(command.wait.size());
    boundary += static_cast<int64_t>(command.prev.size());
  }
  schedule.level = ir::Level::kSynced;
  return PassReport{.changed = true, .counters = {{"waits", waits}, {"across_steps", boundary}}};
}

}  // namespace stowage::passes
