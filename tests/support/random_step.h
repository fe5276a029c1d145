// SPDX-License-Identifier: Apache-2.0
//
// Random graphs in the shape of a training step, and machines for them: what the planner's
// properties are tested on. A chain of layers with skip connections, in-place ops, dropout, shared
// and frozen weights, a backward part that reads what forward left, updates at the end or right
// after their gradient, optimizer state, now and then a persistent gradient that is overwritten
// whole or a buffer that forward updates. The same seed gives the same graph.
#ifndef STOWAGE_TESTS_SUPPORT_RANDOM_STEP_H_
#define STOWAGE_TESTS_SUPPORT_RANDOM_STEP_H_

#include <cstdint>

#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "planner/evaluate/dependencies.h"
#include "planner/problem/timetable.h"

namespace stowage::tests {

struct StepShape {
  uint64_t seed = 1;
  int layers = 4;
  bool alike = false;  // all activations of one size
};

ir::Graph makeRandomStep(const StepShape& shape);

/// 64-byte alignment, a reserved region for some seeds.
ir::Target makeSmallTarget(uint64_t seed);

/// Node times in proportion to nothing, some temporaries, links of `bytesPerMicrosecond`.
ir::CostTable makeRandomCosts(const ir::Graph& graph, uint64_t seed, int64_t bytesPerMicrosecond);

/// A timetable as an executable schedule, waits from computeDependencies. The arena is `budget`, or
/// just high enough when that is 0.
ir::Schedule toSchedule(const ir::Graph& graph, const ir::Target& target,
                        const planner::Timetable& timetable, Bytes budget = {});

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_RANDOM_STEP_H_
