// SPDX-License-Identifier: Apache-2.0
//
// Actions that the search may not touch: what people decide (pins by name, pinned rows of an edited
// plan, whole segments that are recomputed), and gaps in which a node on the host writes.
#ifndef STOWAGE_PLANNER_SEARCH_FIXED_ACTIONS_H_
#define STOWAGE_PLANNER_SEARCH_FIXED_ACTIONS_H_

#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/problem/gaps.h"

namespace stowage::planner {

/// kKeep where nothing is fixed. Where a node on the host writes nothing else counts; else a pinned
/// row counts before a pin, and that before segments.
struct FixedActions {
  Actions actions;
  std::vector<bool> isFixed;   // by gap
  std::vector<bool> isPinned;  // by gap: by a pin or a pinned row
};

/// Errors: kInvalidArgument for a pin that is possible nowhere, for a pinned row that names no gap.
ir::Expected<FixedActions> fixActions(const GapTable& table);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_FIXED_ACTIONS_H_
