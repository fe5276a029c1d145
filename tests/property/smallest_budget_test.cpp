// SPDX-License-Identifier: Apache-2.0
//
// The smallest budget that an infeasible error names works. It is the smallest: one unit of
// alignment less is infeasible, and the decisions of its own plan do not fit below it either.
#include <gtest/gtest.h>

#include "planner/evaluate/evaluate.h"
#include "planner/plan.h"
#include "tests/support/random_step.h"

namespace stowage::planner {
namespace {

class SmallestBudget : public testing::TestWithParam<int> {
 protected:
  SmallestBudget()
      : seed_(static_cast<uint64_t>(GetParam())),
        graph_(tests::makeRandomStep({.seed = seed_, .layers = 1 + GetParam() % 5})),
        target_(tests::makeSmallTarget(seed_)),
        problem_(llvm::cantFail(
            makeProblem(graph_, target_, tests::makeRandomCosts(graph_, seed_, 300)))) {}

  Bytes smallest() const {
    const ir::PlanError answer = ir::takePayload(plan(problem_, Bytes(1)).takeError());
    return answer.infeasible()->smallestBudget;
  }

  uint64_t seed_;
  ir::Graph graph_;
  ir::Target target_;
  Problem problem_;
};

TEST_P(SmallestBudget, WorksAndNothingKnownIsSmaller) {
  for (const bool mayChoose : {true, false}) {
    if (!mayChoose) problem_.allowed = {.offload = false, .recompute = false};
    const Bytes budget = smallest();
    ir::Expected<PlanResult> fits = plan(problem_, budget);
    ASSERT_TRUE(static_cast<bool>(fits)) << budget.value();
    EXPECT_LE(fits->timetable.devicePeak, budget);
    const Bytes less = budget - Bytes(target_.alignBytes);
    ir::Expected<PlanResult> below = plan(problem_, less);
    EXPECT_FALSE(static_cast<bool>(below));
    if (!below) llvm::consumeError(below.takeError());
    const Timetable lower = llvm::cantFail(
        evaluateWithin(problem_, fits->timetable.decisions, less, fits->timetable.prefetchLimit));
    EXPECT_GT(lower.devicePeak, less);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SmallestBudget, testing::Range(0, 24));

}  // namespace
}  // namespace stowage::planner
