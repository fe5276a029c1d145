// SPDX-License-Identifier: Apache-2.0
//
// Lower bounds of one problem: which node asks for the most bytes, and what a budget costs in time
// at least. The linear program at one node has its own test, bound/peak_bound_test.cpp.
#include "planner/bound/bound_solver.h"

#include <gtest/gtest.h>

#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

constexpr int64_t kUnit = tests::kUnitBytes;
constexpr int64_t kUs = tests::kUnitTime;

// T1 >= 11 us and T2 >= 10 us from compute (planner/bound/README.md). Nodes 0, 1, 2 and 4 need 8
// units at once; the first of them is named.
TEST(BoundSolver, TheWorkedStepTakesItsComputeTimeAtLeast) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const BoundSolver solver(table);
  EXPECT_EQ(solver.bound(8 * kUnit), 21 * kUs);
  EXPECT_EQ(solver.bound(16 * kUnit), 21 * kUs);
  EXPECT_EQ(solver.smallestBudget(), 8 * kUnit);
  EXPECT_EQ(solver.widestNode(), ir::NodeId(0));
}

// waitingStep: T1 >= 1 + 8 us for the offload, T2 >= 8 + 1 us for the prefetch. 12 units ask for
// half of both copies: T1 >= 1 + 4, T2 >= 4 + 1. With 16 units compute alone counts.
TEST(BoundSolver, ASmallerBudgetAsksForLongerCopies) {
  const tests::SmallProblem step(tests::waitingStep());
  const GapTable& table = step.table;
  const BoundSolver solver(table);
  const auto expectBound = [&](int units, int64_t us) {
    EXPECT_LE(solver.bound(units * kUnit), us * kUs) << "rounding never raises it";
    EXPECT_GE(solver.bound(units * kUnit), us * kUs - 3) << "at " << units;
  };
  expectBound(8, 18);
  expectBound(12, 10);
  expectBound(16, 3);
}

// Where nothing may leave, `wide` needs a beside its temporaries.
TEST(BoundSolver, WhatMayNotLeaveCountsForTheSmallestBudget) {
  const tests::WorkedStep step;
  Problem problem = step.problem();
  problem.allowed.offload = false;
  const GapTable table(problem);
  const BoundSolver solver(table);
  EXPECT_EQ(solver.smallestBudget(), 16 * kUnit);
  EXPECT_EQ(solver.widestNode(), ir::NodeId(2));
}

// An input of 8 units must arrive in every step, whatever the budget.
TEST(BoundSolver, InputsMustArriveInEveryStep) {
  const tests::SmallProblem step(
      {.items = {{ir::Role::kInput, 8}}, .nodes = {{.op = "test.read.default", .reads = {0}}}});
  const GapTable& table = step.table;
  EXPECT_EQ(BoundSolver(table).bound(100 * kUnit), 8 * kUs);
}

}  // namespace
}  // namespace stowage::planner
