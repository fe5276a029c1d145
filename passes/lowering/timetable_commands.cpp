// SPDX-License-Identifier: Apache-2.0
#include "passes/lowering/timetable_commands.h"

#include <string>

namespace stowage::passes {

namespace {

ir::Error mismatch(const Pass& pass, const std::string& what, size_t found, size_t expected) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       pass.name() + ": found a schedule with " + std::to_string(found) + " " +
                           what + ", expected the timetable's " + std::to_string(expected));
}

size_t countLaunches(const planner::Timetable& timetable) {
  size_t launches = 0;
  for (const planner::TimedAction& action : timetable.actions) {
    launches += action.command.kind == ir::CommandKind::kRun ? 1 : 0;
  }
  return launches;
}

}  // namespace

ir::Command withoutPlace(ir::Command command) {
  command.temp = {};
  command.takes = {};
  command.wait.clear();
  command.prev.clear();
  return command;
}

ir::Error checkHasTimetable(const Pass& pass, const PassState& state) {
  if (state.timetable) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       pass.name() + ": found no timetable, expected one to write out");
}

ir::Error checkFitsTimetable(const Pass& pass, const PassState& state, bool copies) {
  if (ir::Error error = checkHasTimetable(pass, state)) return error;
  const planner::Timetable& timetable = *state.timetable;
  const ir::Schedule& schedule = *state.schedule;
  if (schedule.residencies.size() != timetable.residencies.size()) {
    return mismatch(pass, "residencies", schedule.residencies.size(), timetable.residencies.size());
  }
  const size_t expected = copies ? timetable.actions.size() : countLaunches(timetable);
  if (schedule.commands.size() != expected) {
    return mismatch(pass, "commands", schedule.commands.size(), expected);
  }
  return ir::success();
}

}  // namespace stowage::passes
