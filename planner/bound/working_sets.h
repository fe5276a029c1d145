// SPDX-License-Identifier: Apache-2.0
//
// Bytes that a node needs at once, whatever is decided: operands, results and temporaries, less the
// largest operand that result 0 may land on, and the reserved regions. No schedule needs less.
#ifndef STOWAGE_PLANNER_BOUND_WORKING_SETS_H_
#define STOWAGE_PLANNER_BOUND_WORKING_SETS_H_

#include <cstdint>
#include <vector>

#include "planner/problem/problem.h"

namespace stowage::planner {

/// By node.
std::vector<int64_t> computeWorkingSets(const Problem& problem);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_BOUND_WORKING_SETS_H_
