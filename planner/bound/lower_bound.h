// SPDX-License-Identifier: Apache-2.0
//
// No schedule of the given order and kernel times that fits the budget is faster than this. Valid
// for: one compute stream, copies anywhere the link is idle (also while kernels read), clean and
// dirty storages, recompute, in-place reuse, copies across the step boundary. The bound is the
// largest over several peaks of a small convex problem per peak; each is a relaxation, so dropping
// one only weakens it. Derivation: planner/bound/README.md.
#ifndef STOWAGE_PLANNER_BOUND_LOWER_BOUND_H_
#define STOWAGE_PLANNER_BOUND_LOWER_BOUND_H_

#include "planner/problem/problem.h"

namespace stowage::planner {

struct LowerBound {
  Nanoseconds stepTime;   // at least the sum of the original nodes
  Bytes smallestBudget;   // no schedule at all below this: the largest working set of one node
  ir::NodeId widestNode;  // where that is
};

LowerBound computeLowerBound(const Problem& problem, Bytes budget);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_BOUND_LOWER_BOUND_H_
