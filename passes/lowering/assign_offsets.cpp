// SPDX-License-Identifier: Apache-2.0
#include "passes/lowering/assign_offsets.h"

#include <utility>

#include "passes/lowering/claims.h"
#include "passes/lowering/timetable_commands.h"
#include "passes/manage/pass_options.h"

namespace stowage::passes {

namespace {

std::vector<ir::Arena> makeArenas(const planner::Timetable& timetable, Bytes device) {
  std::vector<ir::Arena> arenas = {{ir::Space::kDevice, device}};
  if (timetable.hostPeak.value() > 0) arenas.push_back({ir::Space::kHost, timetable.hostPeak});
  if (timetable.diskPeak.value() > 0) arenas.push_back({ir::Space::kDisk, timetable.diskPeak});
  return arenas;
}

ir::Error tooSmall(Bytes budget, const planner::Timetable& timetable) {
  ir::PlanError error(ir::ErrorCode::kInfeasible,
                      "the schedule needs " + printSize(timetable.devicePeak) +
                          " on the device, expected at most the budget, " + printSize(budget));
  return ir::makeError(std::move(error.because(
      {.budget = budget, .smallestBudget = timetable.devicePeak, .peakNode = "", .holders = {}})));
}

}  // namespace

ir::Expected<std::unique_ptr<Pass>> AssignOffsets::parse(llvm::StringRef text) {
  AssignOffsetsOptions options;
  OptionReader reader("assign-offsets", text);
  options.budget = reader.readSize("budget", options.budget);
  if (ir::Error error = reader.finish()) return error;
  return std::make_unique<AssignOffsets>(options);
}

std::string AssignOffsets::options() const {
  return options_.budget.value() == 0 ? "" : "budget=" + printSize(options_.budget);
}

ir::Expected<PassReport> AssignOffsets::run(PassState& state) const {
  if (ir::Error error = checkFitsTimetable(*this, state, /*copies=*/true)) return error;
  const planner::Timetable& timetable = *state.timetable;
  const Bytes device = options_.budget.value() > 0 ? options_.budget : timetable.devicePeak;
  if (device < timetable.devicePeak) return tooSmall(device, timetable);
  ir::Schedule& schedule = *state.schedule;
  schedule.arenas = makeArenas(timetable, device);
  schedule.reserved = timetable.reserved;
  schedule.residencies = timetable.residencies;
  int64_t taken = 0;
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    ir::Command& command = schedule.commands[i];
    const ir::TempRegion& temp = timetable.actions[i].command.temp;
    command.temp = temp.bytes.value() > 0 ? temp : ir::TempRegion();
    command.takes = timetable.actions[i].command.takes;
    taken += command.takes.isValid() ? 1 : 0;
  }
  schedule.predicted = computeClaims(state.graph, state.target, schedule, timetable);
  schedule.level = ir::Level::kPlaced;
  return PassReport{.changed = true,
                    .counters = {{"residencies", static_cast<int64_t>(schedule.residencies.size())},
                                 {"reused_in_place", taken},
                                 {"device_bytes", schedule.predicted.peakBytes.value()},
                                 {"host_bytes", schedule.predicted.hostPeakBytes.value()}}};
}

}  // namespace stowage::passes
