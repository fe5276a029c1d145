// SPDX-License-Identifier: Apache-2.0
//
// The launch overhead of a step's commands, from the times at which the launch thread enqueued
// them. A command's overhead includes the events before it. That of a step's first launch also
// includes what the thread does between two steps. Nothing is said where the thread may have
// waited: for the driver when much is under way, for earlier steps at a step's begin, and for the
// step's scalars before the first update.
#ifndef STOWAGE_PLANNER_CORRECT_LAUNCH_TIMES_H_
#define STOWAGE_PLANNER_CORRECT_LAUNCH_TIMES_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/units.h"
#include "ir/costs/step_times.h"
#include "ir/schedule/schedule.h"

namespace stowage::planner {

/// By step and command; nothing for the first step, of which it is not known what was under way.
/// `steps` follow each other. `firstUpdate`: the command before which the thread waits for scalars.
std::vector<std::vector<std::optional<Nanoseconds>>> findLaunchTimes(
    const ir::Schedule& schedule, llvm::ArrayRef<ir::StepTimes> steps,
    size_t firstUpdate = SIZE_MAX);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_CORRECT_LAUNCH_TIMES_H_
