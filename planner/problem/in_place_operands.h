// SPDX-License-Identifier: Apache-2.0
//
// On whose bytes a result may be written, as far as the graph says. Whether those bytes die there
// is a matter of the decisions.
#ifndef STOWAGE_PLANNER_PROBLEM_IN_PLACE_OPERANDS_H_
#define STOWAGE_PLANNER_PROBLEM_IN_PLACE_OPERANDS_H_

#include "ir/graph/graph.h"

namespace stowage::planner {

/// The storage on whose bytes result 0 of `node` may land: op, types, sizes, persistence allow it.
/// `which`: 0 or 1, the operands that the op table names. Invalid if there is none.
ir::StorageId inPlaceCandidate(const ir::Graph& graph, ir::NodeId node, int which);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_PROBLEM_IN_PLACE_OPERANDS_H_
