// SPDX-License-Identifier: Apache-2.0
//
// Steps that several unit tests of the planner use beside the worked step, with the times of their
// plans worked out by hand.
#ifndef STOWAGE_TESTS_UNIT_PLANNER_EXAMPLE_STEPS_H_
#define STOWAGE_TESTS_UNIT_PLANNER_EXAMPLE_STEPS_H_

#include "ir/costs/cost_table.h"
#include "tests/support/small_step.h"
#include "tests/unit/planner/small_problem.h"

namespace stowage::tests {

/// The costs of a step as a cost file has them, by signature: nodes of one op on tensors of one
/// type must cost the same.
inline ir::CostTable costTable(const SmallProblem& step) {
  ir::CostTable table{.device = "units", .links = step.problem.costs.links};
  for (size_t i = 0; i < step.graph.nodes().size(); ++i) {
    table.bySignature[ir::nodeSignature(step.graph, ir::NodeId(i))] = step.problem.costs.nodes[i];
  }
  return table;
}

/// Compute must wait for both copies of an activation of 8 units: 1 + 8 + 1 + 8 + 1 = 19 us if it
/// is offloaded while `wide` runs, and 3 us if 16 units are there to keep it.
inline SmallStep waitingStep() {
  return {.items = {{ir::Role::kActivation, 8}},
          .nodes = {{.op = "test.make.default", .time = 1, .results = {0}},
                    {.op = "test.wide.default", .time = 1, .temporary = 8},
                    {.op = "test.read.default", .time = 1, .reads = {0}}}};
}

/// Activations a and b of 4 units must both be away while `wide` uses 8 units. A recompute of one
/// takes 10 us, a copy 4 us. The three ways, by what is on the host:
///   8 units: both makers, offload of b, wide, both prefetches (the second hides the first read),
///            last read: 10 + 10 + 4 + 1 + 4 + 4 + 1 = 34 us
///   4 units: a offloaded while b is made, prefetched after wide; b is recomputed:
///            10 + 10 + 1 + 4 + 1 + 10 + 1 = 37 us
///   0 units: both recomputed: 10 + 10 + 1 + 10 + 1 + 10 + 1 = 43 us
inline SmallStep hostOrTimeStep() {
  return {.items = {{ir::Role::kActivation, 4}, {ir::Role::kActivation, 4}},
          .nodes = {{.op = "aten.mm.default", .time = 10, .results = {0}},
                    {.op = "aten.mm.default", .time = 10, .results = {1}},
                    {.op = "test.wide.default", .time = 1, .temporary = 8},
                    {.op = "test.read.default", .time = 1, .reads = {0}},
                    {.op = "test.read.default", .time = 1, .reads = {1}}}};
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_UNIT_PLANNER_EXAMPLE_STEPS_H_
