// SPDX-License-Identifier: Apache-2.0
//
// What a recompute at the end of a gap takes: its writers, and inputs that are dead, live or
// overwritten by then.
#include "planner/problem/recompute_costs.h"

#include <gtest/gtest.h>

#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using ir::Role;
using tests::WorkedStep;

/// Node 0 makes x in 2 us, node 1 makes y of 8 units from it in 3 us, and node 3 reads y after
/// `wide`. Both makers may be recomputed.
tests::SmallStep makeChain(int unitsOfX) {
  return {.items = {{Role::kActivation, unitsOfX}, {Role::kActivation, 8}},
          .nodes = {{.op = "aten.mm.default", .time = 2, .results = {0}},
                    {.op = "aten.mm.default", .time = 3, .reads = {0}, .results = {1}},
                    {.op = "test.wide.default", .temporary = 8},
                    {.op = "test.read.default", .reads = {1}}}};
}

/// Of y, whose first gap is [1,3).
std::optional<RecomputeCost> costOfY(const GapTable& table) {
  return findRecomputeCost(table, table.gapIndex(ir::StorageId(1), 0), 3);
}

// No op of the worked step may be recomputed. If `make` may, it takes 1 us and frees all of a. In
// the gap [0,1), with no node inside, nothing is gained.
TEST(RecomputeCosts, TheWorkedStep) {
  const WorkedStep worked;
  EXPECT_FALSE(findRecomputeCost(GapTable(worked.problem()), 1, 4));

  tests::SmallStep small = tests::workedStepWith(8);
  small.nodes[0].op = "aten.mm.default";
  const tests::SmallProblem step(small);
  const GapTable& table = step.table;
  const std::optional<RecomputeCost> cost = findRecomputeCost(table, 1, 4);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->time, WorkedStep::us(1));
  EXPECT_EQ(cost->bytes, WorkedStep::units(8));
  EXPECT_TRUE(cost->extended.empty());
  EXPECT_TRUE(cost->open.empty());
  EXPECT_FALSE(findRecomputeCost(table, 0, 1));
}

// x is dead after node 1. More than a quarter of y is recomputed too: 2 + 3 us for 8 units. A
// quarter stays for the recompute: 3 us, but only 8 - 2 units are freed.
TEST(RecomputeCosts, ADeadInputIsRecomputedTooOrStays) {
  const tests::SmallProblem large(makeChain(3));
  const GapTable& largeTable = large.table;
  const std::optional<RecomputeCost> both = costOfY(largeTable);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->time, WorkedStep::us(2 + 3));
  EXPECT_EQ(both->bytes, WorkedStep::units(8));
  EXPECT_TRUE(both->extended.empty());

  const tests::SmallProblem small(makeChain(2));
  const GapTable& smallTable = small.table;
  const std::optional<RecomputeCost> one = costOfY(smallTable);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->time, WorkedStep::us(3));
  EXPECT_EQ(one->bytes, WorkedStep::units(8 - 2));
  ASSERT_EQ(one->extended.size(), 1U);
  EXPECT_EQ(one->extended[0], smallTable.gapIndex(ir::StorageId(0), 1)) << "the tail of x";
}

// If node 4 reads x again, x is live in [1,4): it need not be recomputed, but must be back.
TEST(RecomputeCosts, ALiveInputMustBeBack) {
  tests::SmallStep small = makeChain(8);
  small.nodes.push_back({.op = "test.read.default", .reads = {0}});
  const tests::SmallProblem step(small);
  const GapTable& table = step.table;
  const std::optional<RecomputeCost> cost = costOfY(table);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->time, WorkedStep::us(3));
  EXPECT_EQ(cost->bytes, WorkedStep::units(8));
  ASSERT_EQ(cost->open.size(), 1U);
  EXPECT_EQ(cost->open[0], table.gapIndex(ir::StorageId(0), 1));
}

// `wide` changes x in place, so the version that y was made from is gone.
TEST(RecomputeCosts, AnOverwrittenInputRulesItOut) {
  tests::SmallStep small = makeChain(8);
  small.nodes[2] = {.op = "aten.relu_.default", .reads = {0}, .updates = {0}};
  const tests::SmallProblem step(small);
  const GapTable& table = step.table;
  ASSERT_TRUE(table.gaps()[table.gapIndex(ir::StorageId(1), 0)].mayRecompute);
  EXPECT_FALSE(costOfY(table));
}

}  // namespace
}  // namespace stowage::planner
