// SPDX-License-Identifier: Apache-2.0
//
// No schedule is faster than the bound: held against every schedule of small random steps. The
// formula as it was first written down fails the same property, so the property can fail.
// STOWAGE_BOUND_SEEDS=100000 looks at more steps than a test run has time for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "planner/bound/bound_solver.h"
#include "planner/plan.h"
#include "tests/support/exhaustive_search.h"
#include "tests/support/reference_bound.h"

namespace stowage::planner {
namespace {

uint64_t seedCount() {
  const char* asked = std::getenv("STOWAGE_BOUND_SEEDS");
  return asked == nullptr ? 2000 : std::strtoull(asked, nullptr, 10);
}

/// A step with a budget between what one node needs and a little more than everything.
struct Case {
  explicit Case(uint64_t seed)
      : step(tests::drawSmallStep(seed)),
        graph(tests::toGraph(step)),
        target(tests::smallTarget()),
        problem(tests::toProblem(step, graph, target)),
        table(problem),
        solver(table) {
    const int64_t lowest = solver.smallestBudget() / tests::kUnitBytes;
    budgetUnits = static_cast<int>(lowest + static_cast<int64_t>(seed % 3));
  }
  int64_t budget() const { return budgetUnits * tests::kUnitBytes; }
  bool hasInput() const {
    return std::any_of(step.items.begin(), step.items.end(),
                       [](const tests::SmallItem& item) { return item.role == ir::Role::kInput; });
  }

  tests::SmallStep step;
  ir::Graph graph;
  ir::Target target;
  Problem problem;
  GapTable table;
  BoundSolver solver;
  int budgetUnits = 0;
};

TEST(LowerBoundProperty, IsNeverAboveTheBestOfAllSchedules) {
  int bounding = 0;
  int close = 0;  // of every eighth
  const uint64_t seeds = seedCount();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Case c(seed);
    const int64_t bound = c.solver.bound(c.budget());
    const tests::Verdict verdict = tests::searchAllSchedules(c.step, c.budgetUnits, bound);
    ASSERT_NE(verdict, tests::Verdict::kFaster)
        << "seed " << seed << ", bound " << bound << ", budget " << c.budgetUnits;
    if (verdict == tests::Verdict::kNoSchedule || bound == c.solver.bound(INT64_MAX / 4)) continue;
    if (++bounding % 8 != 0) continue;
    const int64_t near = bound + bound / 4;
    close += tests::searchAllSchedules(c.step, c.budgetUnits, near) == tests::Verdict::kFaster;
  }
  // The budget matters often enough. Few items of a few units leave whole or not at all, so the
  // best schedule is above the bound, but often not by much.
  EXPECT_GT(bounding, static_cast<int>(seeds / 8));
  EXPECT_GT(close, bounding / 8 / 4);
}

TEST(LowerBoundProperty, TheFirstFormulaIsNotABound) {
  int violations = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Case c(seed);
    const double bound =
        tests::referenceBound(c.problem, c.budget(), tests::Formula::kAsFirstWritten);
    const auto rounded = static_cast<int64_t>(bound * (1 - 1e-9)) - 1;
    violations +=
        tests::searchAllSchedules(c.step, c.budgetUnits, rounded) == tests::Verdict::kFaster;
  }
  EXPECT_GT(violations, 5);
}

TEST(LowerBoundProperty, EqualsTheLinearProgramWithAllItsRows) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    const Case c(seed);
    const tests::ReferencePeaks reference = tests::derivePeaks(c.problem, tests::Formula::kAsItIs);
    for (const Peak& peak : reference.peaks) {
      const auto budget = static_cast<double>(c.budget());
      const double expected = tests::solvePeakProgram(peak, reference.frame, budget);
      ASSERT_GE(expected, 0) << "seed " << seed << " node " << peak.node;
      ASSERT_NEAR(boundAtPeak(peak, reference.frame, budget), expected, 1e-6 * expected)
          << "seed " << seed << " node " << peak.node;
      compared += expected > reference.frame.timeBefore.back();
    }
  }
  EXPECT_GT(compared, 1000);
}

// The solver picks all nodes of a small step as peaks, so its items must give the same number.
TEST(LowerBoundProperty, TheSolversItemsAreThoseOfTheGraph) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    const Case c(seed);
    if (c.hasInput()) continue;  // inputs bound in another way too
    const double expected = tests::referenceBound(c.problem, c.budget(), tests::Formula::kAsItIs);
    const auto bound = static_cast<double>(c.solver.bound(c.budget()));
    ASSERT_NEAR(bound, expected, 1e-6 * expected + 3) << "seed " << seed;
  }
}

TEST(LowerBoundProperty, NoScheduleFitsBelowTheSmallestBudget) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Case c(seed);
    const int units = static_cast<int>(c.solver.smallestBudget() / tests::kUnitBytes) - 1;
    ASSERT_EQ(tests::searchAllSchedules(c.step, units, INT64_MAX / 64), tests::Verdict::kNoSchedule)
        << "seed " << seed;
  }
}

// What the planner finds is one of all schedules: the search that all else here rests on misses
// nothing that the planner knows.
TEST(LowerBoundProperty, TheSearchKnowsThePlannersSchedules) {
  int planned = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Case c(seed);
    if (c.hasInput()) continue;  // the search has one place for two steps' inputs
    ir::Expected<PlanResult> result = plan(c.problem, Bytes(c.budget()));
    if (!result) {
      llvm::consumeError(result.takeError());
      continue;
    }
    ++planned;
    const int64_t time = result->timetable.stepTime.value();
    EXPECT_GE(time, c.solver.bound(c.budget())) << "seed " << seed;
    EXPECT_EQ(tests::searchAllSchedules(c.step, c.budgetUnits, time + tests::kUnitTime / 2),
              tests::Verdict::kFaster)
        << "seed " << seed << ", planned " << time;
  }
  EXPECT_GT(planned, 40);
}

}  // namespace
}  // namespace stowage::planner
