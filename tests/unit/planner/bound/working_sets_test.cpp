// SPDX-License-Identifier: Apache-2.0
//
// Bytes that each node needs at once, whatever is decided.
#include "planner/bound/working_sets.h"

#include <gtest/gtest.h>

#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using ir::Role;

std::vector<int64_t> setsInUnits(const Problem& problem) {
  std::vector<int64_t> sets = computeWorkingSets(problem);
  for (int64_t& bytes : sets) {
    EXPECT_EQ(bytes % tests::kUnitBytes, 0) << "rounded up to the alignment";
    bytes /= tests::kUnitBytes;
  }
  return sets;
}

// a where it is used, the temporaries of `wide`, and nothing for `other`.
TEST(WorkingSets, TheWorkedStep) {
  const tests::WorkedStep step;
  EXPECT_EQ(setsInUnits(step.problem()), (std::vector<int64_t>{8, 8, 8, 0, 8}));
}

// relu may write its result over its operand: 4 units instead of 8. A result of another size may
// not.
TEST(WorkingSets, AnInPlaceReuseCountsOnce) {
  const auto step = [](int resultUnits) {
    return tests::SmallStep{.items = {{Role::kActivation, 4}, {Role::kActivation, resultUnits}},
                            .nodes = {{.op = "test.make.default", .results = {0}},
                                      {.op = "aten.relu.default", .reads = {0}, .results = {1}},
                                      {.op = "test.read.default", .reads = {1}}}};
  };
  const tests::SmallProblem same(step(4));
  EXPECT_EQ(setsInUnits(same.problem), (std::vector<int64_t>{4, 4, 4}));
  Problem without = same.problem;
  without.allowed.inPlaceReuse = false;
  EXPECT_EQ(setsInUnits(without), (std::vector<int64_t>{4, 8, 4}));
  const tests::SmallProblem other(step(2));
  EXPECT_EQ(setsInUnits(other.problem), (std::vector<int64_t>{4, 6, 2}));
}

// Two regions of 1 B take a unit each at every node, and a temporary of 65 B takes two units.
TEST(WorkingSets, ReservedRegionsAndTemporariesAreRoundedUp) {
  const tests::SmallStep small = {.items = {},
                                  .nodes = {{.op = "test.a.default"}, {.op = "test.b.default"}}};
  const ir::Graph graph = tests::toGraph(small);
  ir::Target target = tests::smallTarget();
  target.reserved = {{.what = "one", .bytes = Bytes(1)}, {.what = "two", .bytes = Bytes(1)}};
  Problem problem = tests::toProblem(small, graph, target);
  problem.costs.nodes[1].temporary = Bytes(65);
  EXPECT_EQ(setsInUnits(problem), (std::vector<int64_t>{2, 4}));
}

}  // namespace
}  // namespace stowage::planner
