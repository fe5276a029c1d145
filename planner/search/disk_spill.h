// SPDX-License-Identifier: Apache-2.0
//
// Sends to disk what the host has no room for. A plan that needs more of the host than its limit
// comes in. Storages go to disk, those first whose bytes cost the disk least, until the rest fits
// beside the rings through which the disk is reached. Several sizes of the rings are tried; the
// fastest plan comes out. What the plan does on the device does not change.
#ifndef STOWAGE_PLANNER_SEARCH_DISK_SPILL_H_
#define STOWAGE_PLANNER_SEARCH_DISK_SPILL_H_

#include <optional>
#include <vector>

#include "planner/search/fixed_actions.h"
#include "planner/search/known_plan.h"

namespace stowage::planner {

/// A plan that keeps to the problem's limits of host and disk; nothing if none was found. `least`
/// becomes the smallest host peak that was met, if that is lower.
std::optional<KnownPlan> spillToDisk(const GapTable& table, const FixedActions& fixed,
                                     const KnownPlan& plan, int64_t& least);

/// No plan that has `bytes` on disk at one moment takes less time: they are read once in a step.
int64_t leastDiskTime(const Problem& problem, int64_t bytes);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_DISK_SPILL_H_
