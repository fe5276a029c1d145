// SPDX-License-Identifier: Apache-2.0
#include "passes/lowering/insert_recompute.h"

#include <utility>

#include "ir/graph/op_table.h"
#include "ir/schedule/fingerprint.h"
#include "passes/lowering/timetable_commands.h"
#include "passes/manage/pass_options.h"

namespace stowage::passes {

ir::Expected<std::unique_ptr<Pass>> InsertRecompute::parse(llvm::StringRef text) {
  InsertRecomputeOptions options;
  OptionReader reader("insert-recompute", text);
  const std::string mode = reader.readWord("graph", ir::graphModeName(options.graphMode));
  if (ir::Error error = reader.finish()) return error;
  const std::optional<ir::GraphMode> found = ir::findGraphMode(mode);
  if (!found) {
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        "insert-recompute: option 'graph' is '" + mode + "', expected none, no_update or whole");
  }
  return std::make_unique<InsertRecompute>(InsertRecomputeOptions{.graphMode = *found});
}

std::string InsertRecompute::options() const {
  if (options_.graphMode == InsertRecomputeOptions().graphMode) return "";
  return std::string("graph=") + ir::graphModeName(options_.graphMode);
}

ir::Expected<PassReport> InsertRecompute::run(PassState& state) const {
  if (ir::Error error = checkHasTimetable(*this, state)) return error;
  const planner::Timetable& timetable = *state.timetable;
  ir::Schedule schedule;
  schedule.level = ir::Level::kOrdered;
  schedule.graphFingerprint = ir::fingerprint(state.graph);
  schedule.targetFingerprint = ir::fingerprint(state.target);
  schedule.opTableVersion = ir::opTableVersion();
  schedule.graphMode = options_.graphMode;
  schedule.joined = timetable.joined;
  schedule.decisions = timetable.decisions.rows;
  schedule.boundary = timetable.boundary;
  schedule.residencies = timetable.residencies;
  for (ir::Residency& residency : schedule.residencies) residency.offset = ir::kUnplaced;
  int64_t recomputes = 0;
  for (const planner::TimedAction& action : timetable.actions) {
    if (action.command.kind != ir::CommandKind::kRun) continue;
    recomputes += action.command.recompute > 0 ? 1 : 0;
    schedule.commands.push_back(withoutPlace(action.command));
  }
  const auto launches = static_cast<int64_t>(schedule.commands.size());
  const bool changed = state.schedule != schedule;
  state.schedule = std::move(schedule);
  return PassReport{.changed = changed,
                    .counters = {{"launches", launches}, {"recomputes", recomputes}}};
}

}  // namespace stowage::passes
