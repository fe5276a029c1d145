// SPDX-License-Identifier: Apache-2.0
//
// What the passes that write out a timetable share: its commands stripped to what a level knows,
// and the check that there is a timetable which the schedule at hand was begun from.
#ifndef STOWAGE_PASSES_LOWERING_TIMETABLE_COMMANDS_H_
#define STOWAGE_PASSES_LOWERING_TIMETABLE_COMMANDS_H_

#include "ir/schedule/schedule.h"
#include "passes/manage/pass.h"

namespace stowage::passes {

/// The command as it is before placement and synchronisation.
ir::Command withoutPlace(ir::Command command);

/// kInvalidArgument if the state has no timetable.
ir::Error checkHasTimetable(const Pass& pass, const PassState& state);

/// kInvalidArgument if the schedule has other residencies, or, with `copies`, other commands than
/// the timetable.
ir::Error checkFitsTimetable(const Pass& pass, const PassState& state, bool copies);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_LOWERING_TIMETABLE_COMMANDS_H_
