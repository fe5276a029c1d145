// SPDX-License-Identifier: Apache-2.0
//
// What people decide: pins by name and pinned rows of an edited plan, as actions that the search
// may not touch.
#ifndef STOWAGE_PLANNER_SEARCH_FIXED_ACTIONS_H_
#define STOWAGE_PLANNER_SEARCH_FIXED_ACTIONS_H_

#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/problem/gaps.h"

namespace stowage::planner {

/// What pins and pinned rows fix; kKeep where they fix nothing.
struct FixedActions {
  Actions actions;
  std::vector<bool> isFixed;  // by gap
};

/// Errors: kInvalidArgument for a pin that is possible nowhere, for a pinned row that names no gap.
ir::Expected<FixedActions> fixActions(const GapTable& table);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_FIXED_ACTIONS_H_
