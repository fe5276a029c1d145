// SPDX-License-Identifier: Apache-2.0
//
// The front door of the planner: the plan of the worked step, its infeasible error, and what the
// answer adds to a search: pins as rows, and whether a plan is needed at all.
#include "planner/plan.h"

#include <gtest/gtest.h>

#include "tests/support/or_fail.h"
#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using tests::orFail;
using tests::WorkedStep;

// planner/README.md: 5 launches and 2 copies, one row, and no wait, so the step takes its compute
// time of 1 + 10 + 1 + 8 + 1 us. Keeping everything takes a and the temporaries of `wide`.
TEST(Plan, TheWorkedStepOffloadsItsActivationAndWaitsForNothing) {
  const WorkedStep step;
  const PlanResult result = orFail(plan(step.problem(), WorkedStep::budget()));
  const ir::DecisionRow row{step.a(), 1, 4, ir::GapAction::kHost, /*pinned=*/false, "hidden"};
  EXPECT_EQ(result.timetable.decisions.rows, std::vector{row});
  EXPECT_EQ(result.timetable.actions.size(), 7U);
  EXPECT_EQ(result.timetable.devicePeak, WorkedStep::units(8));
  EXPECT_EQ(result.timetable.hostPeak, WorkedStep::units(8));
  EXPECT_EQ(result.timetable.stepTime, WorkedStep::us(21));
  EXPECT_EQ(result.bound, WorkedStep::us(21));
  EXPECT_EQ(result.keepAllPeak, WorkedStep::units(16));
  EXPECT_TRUE(result.planNeeded);
}

TEST(Plan, WhereEverythingFitsNoPlanIsNeeded) {
  const WorkedStep step;
  const PlanResult result = orFail(plan(step.problem(), WorkedStep::units(16)));
  EXPECT_TRUE(result.timetable.decisions.rows.empty());
  EXPECT_EQ(result.timetable.actions.size(), 5U);
  EXPECT_FALSE(result.planNeeded);
}

// The 8 units of `wide` alone are the least. One byte less is infeasible.
TEST(Plan, BelowTheSmallestBudgetTheErrorNamesIt) {
  const WorkedStep step;
  ir::Expected<PlanResult> result = plan(step.problem(), WorkedStep::units(8) - Bytes(1));
  ASSERT_FALSE(static_cast<bool>(result));
  const ir::PlanError error = ir::takePayload(result.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kInfeasible);
  ASSERT_TRUE(error.infeasible());
  EXPECT_EQ(error.infeasible()->smallestBudget, WorkedStep::units(8));
}

// A pin is a row of the answer even if it asks for what happens anyway. Gaps in which nothing may
// be done have no row.
TEST(Plan, APinBecomesARowSoThatItHoldsInTheNextPlan) {
  const WorkedStep step;
  Problem problem = step.problem();
  for (const ir::GapAction action : {ir::GapAction::kKeep, ir::GapAction::kHost}) {
    problem.pins = {{.pattern = "s0", .action = action}};
    const PlanResult result = orFail(plan(problem, WorkedStep::units(16)));
    const ir::DecisionRow row{step.a(), 1, 4, action, /*pinned=*/true, "pinned"};
    EXPECT_EQ(result.timetable.decisions.rows, std::vector{row});
    EXPECT_TRUE(result.planNeeded);
  }
}

// Two points of the frontier: 3 us with 16 units, 19 us with 8. In the worked step 8 units are as
// fast as 16, so there is one point.
TEST(Plan, APointOfTheFrontierWithAHigherPeakIsStrictlyFaster) {
  const tests::SmallProblem waiting(tests::waitingStep());
  const std::vector<FrontierPoint> points = orFail(computeFrontier(waiting.problem));
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].peak, WorkedStep::units(16));
  EXPECT_EQ(points[0].time, WorkedStep::us(3));
  EXPECT_TRUE(points[0].decisions.rows.empty());
  EXPECT_EQ(points[1].peak, WorkedStep::units(8));
  EXPECT_EQ(points[1].time, WorkedStep::us(19));
  EXPECT_EQ(points[1].decisions.rows.size(), 1U);

  const WorkedStep worked;
  EXPECT_EQ(orFail(computeFrontier(worked.problem())).size(), 1U);
}

}  // namespace
}  // namespace stowage::planner
