// SPDX-License-Identifier: Apache-2.0
//
// Costs that a test's steps may be planned and run with, the same each time. What ops need beside
// their results is measured: it does not depend on how busy the machine is. Their times and the
// links come from the target's profile, so that a test meets the same plans each time.
#ifndef STOWAGE_TESTS_SUPPORT_REPEATABLE_COSTS_H_
#define STOWAGE_TESTS_SUPPORT_REPEATABLE_COSTS_H_

#include "planner/targets/roofline.h"
#include "runtime/calibrate/calibrate.h"
#include "tests/support/or_fail.h"

namespace stowage::tests {

inline ir::CostTable repeatableCosts(const ir::Graph& graph, const ir::Target& target) {
  ir::CostTable costs = planner::rooflineCosts(graph, target);
  const ir::CostTable measured =
      orFail(runtime::calibrate(graph, {.intraOpThreads = target.intraOpThreads,
                                        .deterministic = target.deterministic,
                                        .runs = 1,
                                        .known = {}}));
  for (const auto& [signature, row] : measured.bySignature) {
    ir::OpCost& cost = costs.bySignature.at(signature);
    const Nanoseconds work = cost.work;
    cost = row;
    cost.work = work;
  }
  return costs;
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_REPEATABLE_COSTS_H_
