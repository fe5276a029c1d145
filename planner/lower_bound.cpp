// SPDX-License-Identifier: Apache-2.0
#include "planner/lower_bound.h"

#include <algorithm>

#include "planner/working_sets.h"

namespace stowage::planner {

LowerBound computeLowerBound(const Problem& problem, Bytes budget) {
  static_cast<void>(budget);
  LowerBound bound;
  for (const ir::OpCost& cost : problem.costs.nodes) bound.stepTime += cost.time;
  const std::vector<int64_t> sets = computeWorkingSets(problem);
  for (size_t i = 0; i < sets.size(); ++i) {
    if (Bytes(sets[i]) <= bound.smallestBudget) continue;
    bound.smallestBudget = Bytes(sets[i]);
    bound.widestNode = ir::NodeId(i);
  }
  return bound;
}

}  // namespace stowage::planner
