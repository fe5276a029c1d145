// SPDX-License-Identifier: Apache-2.0
//
// Linear programs with bounded variables: solved on paper, and random ones against the dense
// solver of the bound.
#include "planner/flow/flow_simplex.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "planner/bound/dual_simplex.h"

namespace stowage::planner {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr int64_t kSteps = 1000;

FlowColumn column(double cost, double most, std::vector<std::pair<int32_t, double>> cells) {
  return {.cost = cost, .most = most, .cells = {cells.begin(), cells.end()}};
}

// x + y >= 4, x <= 3: the cheaper x is used up, y is what is left. 2 * 3 + 3 * 1 = 9.
TEST(FlowSimplex, ACheapVariableIsUsedUpFirst) {
  FlowSimplex simplex({{.limit = -4}}, {column(2, 3, {{0, -1}}), column(3, kNoLimit, {{0, -1}})});
  ASSERT_TRUE(simplex.solve(kSteps));
  EXPECT_NEAR(simplex.values()[0], 3, 1e-9);
  EXPECT_NEAR(simplex.values()[1], 1, 1e-9);
  EXPECT_NEAR(simplex.cost(), 9, 1e-9);
}

// The same with x = y added, and then with x <= 1 instead.
TEST(FlowSimplex, RowsAreAddedAfterwards) {
  const std::vector<FlowColumn> columns = {column(2, 3, {{0, -1}}), column(3, kNoLimit, {{0, -1}})};
  FlowSimplex simplex({{.limit = -4}}, columns);
  ASSERT_TRUE(simplex.solve(kSteps));
  simplex.addRow(0, {{0, 1.0}, {1, -1.0}});
  ASSERT_TRUE(simplex.solve(kSteps));
  EXPECT_NEAR(simplex.values()[0], 2, 1e-9);
  EXPECT_NEAR(simplex.cost(), 10, 1e-9);
  simplex.addRow(1, {{0, 1.0}});
  ASSERT_TRUE(simplex.solve(kSteps));
  EXPECT_NEAR(simplex.values()[1], 3, 1e-9);
  EXPECT_NEAR(simplex.cost(), 11, 1e-9);
}

TEST(FlowSimplex, AnEqualityHoldsOnBothSides) {
  FlowSimplex simplex({{.limit = 2, .isEquality = true}, {.limit = -5}},
                      {column(1, 4, {{0, 1}, {1, -1}}), column(1, kNoLimit, {{0, -1}, {1, -1}})});
  ASSERT_TRUE(simplex.solve(kSteps));
  EXPECT_NEAR(simplex.values()[0], 3.5, 1e-9);
  EXPECT_NEAR(simplex.values()[1], 1.5, 1e-9);
}

TEST(FlowSimplex, WithoutAFeasiblePointNothingIsSolved) {
  FlowSimplex simplex({{.limit = -4}}, {column(1, 3, {{0, -1}})});
  EXPECT_FALSE(simplex.solve(kSteps));
}

// Limits of variables are rows there.
TEST(FlowSimplex, RandomProgramsCostWhatTheDenseSolverFinds) {
  int solved = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int least, int most) {
      return static_cast<int>(random() % static_cast<uint32_t>(most - least + 1)) + least;
    };
    const auto rows = static_cast<size_t>(draw(1, 8));
    const auto count = static_cast<size_t>(draw(1, 12));
    LinearProgram dense;
    std::vector<FlowRow> flowRows;
    std::vector<FlowColumn> columns(count);
    for (size_t i = 0; i < rows; ++i) {
      dense.rows.emplace_back(count, 0.0);
      dense.limits.push_back(draw(-6, 6));
      flowRows.push_back({.limit = -dense.limits.back()});
    }
    for (size_t j = 0; j < count; ++j) {
      columns[j].cost = draw(0, 9);
      columns[j].most = draw(0, 2) > 0 ? draw(1, 4) : kNoLimit;
      dense.cost.push_back(columns[j].cost);
      for (size_t i = 0; i < rows; ++i) {
        if (draw(0, 1) == 0) continue;
        dense.rows[i][j] = draw(-4, 4);
        columns[j].cells.push_back({static_cast<int32_t>(i), -dense.rows[i][j]});
      }
      if (columns[j].most == kNoLimit) continue;
      dense.rows.emplace_back(count, 0.0);
      dense.rows.back()[j] = -1;
      dense.limits.push_back(-columns[j].most);
    }
    const LinearSolution known = solveLinearProgram(dense);
    FlowSimplex simplex(flowRows, columns);
    ASSERT_EQ(simplex.solve(kSteps), known.solved) << "seed " << seed;
    if (!known.solved) continue;
    EXPECT_NEAR(simplex.cost(), known.value, 1e-6) << "seed " << seed;
    ++solved;
  }
  EXPECT_GT(solved, 100);
}

}  // namespace
}  // namespace stowage::planner
