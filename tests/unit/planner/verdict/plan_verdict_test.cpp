// SPDX-License-Identifier: Apache-2.0
//
// The verdict on the plan of the worked step: proven, and what becomes of it when the plan claims
// other times than its schedule takes. The example of planner/verdict/README.md is one of them.
#include "planner/verdict/plan_verdict.h"

#include <gtest/gtest.h>

#include "planner/plan.h"
#include "tests/support/or_fail.h"
#include "tests/support/random_step.h"
#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using tests::orFail;
using tests::WorkedStep;

class PlanVerdictOfTheWorkedStep : public testing::Test {
 protected:
  PlanVerdictOfTheWorkedStep() {
    const PlanResult result = orFail(planner::plan(step_.problem, WorkedStep::budget()));
    ir::Schedule schedule =
        tests::toSchedule(step_.graph, step_.target, result.timetable, WorkedStep::budget());
    schedule.predicted.stepTime = WorkedStep::us(21);
    schedule.predicted.bound = WorkedStep::us(21);
    schedule.predicted.computeTime = WorkedStep::us(21);
    plan_ = makePlanFile(step_.graph, step_.target, std::move(schedule), WorkedStep::budget());
    plan_.path = "step.json";
  }
  /// "V30: ..." for each violation.
  std::vector<std::string> judge(const PlansCosts& costs) const {
    std::vector<std::string> texts;
    for (const ir::Violation& violation : orFail(judgePlan(plan_, step_.graph, costs)).violations) {
      texts.push_back("V" + std::to_string(violation.rule) + ": " + violation.message);
    }
    return texts;
  }

  using Texts = std::vector<std::string>;
  const tests::SmallProblem step_{tests::workedStepWith(8)};
  const PlansCosts known_{.file = CostFile{.table = tests::costTable(step_)}};
  const PlansCosts unknown_{.missing = "and does not say where they are"};
  PlanFile plan_;
};

// 20 us is below the bound, below the compute time and not the time of the schedule. Without costs
// only the bound that the plan states itself is left.
TEST_F(PlanVerdictOfTheWorkedStep, ItIsProvenUntilItClaimsAnotherTime) {
  EXPECT_EQ(judge(known_), Texts());
  EXPECT_EQ(judge(unknown_), Texts());
  plan_.schedule.predicted.stepTime = WorkedStep::us(20);
  EXPECT_EQ(judge(known_),
            (Texts{"V30: step of 20000 ns claimed, below the bound of 21000 ns",
                   "V30: step of 20000 ns claimed, but stream compute is busy for 21000 ns",
                   "V30: step of 20000 ns claimed, expected 21000"}));
  EXPECT_EQ(judge(unknown_), Texts{"V30: step of 20000 ns claimed, below the bound of 21000 ns"});
}

// 22 us is possible for some schedule, but this one takes 21.
TEST_F(PlanVerdictOfTheWorkedStep, ALongerStepIsFoundWithCostsAlone) {
  plan_.schedule.predicted.stepTime = WorkedStep::us(22);
  EXPECT_EQ(judge(known_), Texts{"V30: step of 22000 ns claimed, expected 21000"});
  EXPECT_EQ(judge(unknown_), Texts());
  EXPECT_EQ(orFail(judgePlan(plan_, step_.graph, unknown_)).unchecked, unknown_.missing);
}

// Compute leaves no time for a stall, and no schedule is faster than its ops.
TEST_F(PlanVerdictOfTheWorkedStep, StallsAndTheBoundMustFitTheStep) {
  plan_.schedule.predicted.bound = WorkedStep::us(20);
  plan_.stalls.hostToDevice = Nanoseconds(1);
  EXPECT_EQ(judge(known_),
            (Texts{"V30: bound of 20000 ns claimed, expected at least what its ops take, 21000 ns",
                   "V30: stall of 1 ns claimed, expected at most 0, what compute and other stalls "
                   "leave of the step"}));
  // Waits for launches are in the compute time, and another order has others.
  plan_.stalls.hostToDevice = Nanoseconds(0);
  EXPECT_EQ(judge(unknown_), Texts());
}

TEST_F(PlanVerdictOfTheWorkedStep, AsAnErrorItNamesThePlanAndTheRules) {
  EXPECT_EQ(ir::describe(checkPlan(plan_, step_.graph, known_)), "");
  plan_.schedule.predicted.stepTime = WorkedStep::us(22);
  const ir::PlanError broken = ir::takePayload(checkPlan(plan_, step_.graph, known_));
  EXPECT_EQ(broken.code(), ir::ErrorCode::kViolation);
  EXPECT_EQ(broken.location().file, "step.json");
  EXPECT_EQ(broken.notes(), Texts{"V30: step of 22000 ns claimed, expected 21000"});

  const PlansCosts empty{.file = CostFile{}, .path = "costs.json"};
  const ir::PlanError lacking = ir::takePayload(checkPlan(plan_, step_.graph, empty));
  EXPECT_EQ(lacking.code(), ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(lacking.location().file, "costs.json");
}

}  // namespace
}  // namespace stowage::planner
