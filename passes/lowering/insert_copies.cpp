// SPDX-License-Identifier: Apache-2.0
#include "passes/lowering/insert_copies.h"

#include <utility>

#include "passes/lowering/timetable_commands.h"

namespace stowage::passes {

ir::Expected<PassReport> InsertCopies::run(PassState& state) const {
  if (ir::Error error = checkFitsTimetable(*this, state, /*copies=*/false)) return error;
  ir::Schedule& schedule = *state.schedule;
  std::vector<ir::Command> commands;
  int64_t out = 0;
  int64_t in = 0;
  size_t nextLaunch = 0;
  for (const planner::TimedAction& action : state.timetable->actions) {
    if (action.command.kind == ir::CommandKind::kRun) {
      commands.push_back(schedule.commands[nextLaunch++]);
      continue;
    }
    const ir::Space to = schedule.residency(action.command.to).space;
    const ir::Space from = schedule.residency(action.command.from).space;
    (to > from ? out : in) += 1;
    commands.push_back(withoutPlace(action.command));
  }
  schedule.commands = std::move(commands);
  schedule.level = ir::Level::kCopied;
  return PassReport{.changed = true, .counters = {{"copies_out", out}, {"copies_in", in}}};
}

}  // namespace stowage::passes
