// SPDX-License-Identifier: Apache-2.0
//
// Small linear programs with solutions found on paper: the value, the point, and what a unit of
// each limit costs.
#include "planner/bound/dual_simplex.h"

#include <gtest/gtest.h>

namespace stowage::planner {
namespace {

// The bound of the worked step (planner/bound/README.md) in us and units, columns T, T1, T2 and the
// offloaded units e. Both parts of the step are bound by compute: one us more of either lengthens
// the step by one, and the copies cost nothing.
TEST(DualSimplex, TheBoundOfTheWorkedStep) {
  const LinearSolution solution = solveLinearProgram({
      .cost = {1, 0, 0, 0},
      .rows = {{1, -1, -1, 0},  // T >= T1 + T2
               {0, 0, 0, 1},    // cover: e >= 8
               {0, 1, 0, 0},    // compute before: T1 >= 1 + 10
               {0, 0, 1, 0},    // compute from there: T2 >= 1 + 8 + 1
               {0, 1, 0, -1},   // offload: T1 >= 1 + e
               {0, 0, 1, -1}},  // prefetch: T2 >= 1 + e
      .limits = {0, 8, 11, 10, 1, 1},
  });
  ASSERT_TRUE(solution.solved);
  EXPECT_NEAR(solution.value, 21, 1e-9);
  EXPECT_NEAR(solution.x[1], 11, 1e-9);
  EXPECT_NEAR(solution.x[2], 10, 1e-9);
  const std::vector<double> prices = {1, 0, 1, 1, 0, 0};
  for (size_t i = 0; i < prices.size(); ++i) EXPECT_NEAR(solution.prices[i], prices[i], 1e-9) << i;
}

// Both rows hold with equality at (3, 1): 2 * 3 + 3 * 1 = 9. Prices p and q of the rows solve
// p + q = 2 and p + 3 q = 3, and 4 p + 6 q is the value again.
TEST(DualSimplex, PricesSayWhatAUnitOfALimitCosts) {
  const LinearProgram program{.cost = {2, 3}, .rows = {{1, 1}, {1, 3}}, .limits = {4, 6}};
  const LinearSolution solution = solveLinearProgram(program);
  ASSERT_TRUE(solution.solved);
  EXPECT_NEAR(solution.value, 9, 1e-9);
  EXPECT_NEAR(solution.x[0], 3, 1e-9);
  EXPECT_NEAR(solution.x[1], 1, 1e-9);
  EXPECT_NEAR(solution.prices[0], 1.5, 1e-9);
  EXPECT_NEAR(solution.prices[1], 0.5, 1e-9);
}

// x >= 1 and x <= 0 hold at no point. Limits that x = 0 meets cost nothing.
TEST(DualSimplex, WithoutAFeasiblePointNothingIsSolved) {
  EXPECT_FALSE(solveLinearProgram({.cost = {1}, .rows = {{1}, {-1}}, .limits = {1, 0}}).solved);
  const LinearSolution free = solveLinearProgram({.cost = {1}, .rows = {{1}}, .limits = {-5}});
  ASSERT_TRUE(free.solved);
  EXPECT_EQ(free.value, 0);
  EXPECT_EQ(free.x[0], 0);
}

}  // namespace
}  // namespace stowage::planner
