// SPDX-License-Identifier: Apache-2.0
//
// What plan() promises, on random steps: the schedule is proven by the verifier, not higher than
// the budget, not faster than the bound, never slower with more budget; the smallest budget that an
// infeasible error names works, and one alignment unit less does not.
#include <gtest/gtest.h>
#include <llvm/Support/raw_ostream.h>

#include <set>

#include "ir/verify/verify.h"
#include "planner/evaluate/evaluate.h"
#include "planner/files/plan_json.h"
#include "planner/plan.h"
#include "tests/support/random_step.h"

namespace stowage::planner {
namespace {

class PlanProperty : public testing::TestWithParam<int> {
 protected:
  PlanProperty()
      : seed_(static_cast<uint64_t>(GetParam())),
        graph_(tests::makeRandomStep({.seed = seed_, .layers = 1 + GetParam() % 5})),
        target_(tests::makeSmallTarget(seed_)),
        problem_(llvm::cantFail(
            makeProblem(graph_, target_, tests::makeRandomCosts(graph_, seed_, 500)))) {
    problem_.graphMode = seed_ % 4 == 0   ? ir::GraphMode::kWhole
                         : seed_ % 4 == 1 ? ir::GraphMode::kNoUpdate
                                          : ir::GraphMode::kNone;
  }

  Bytes smallestBudget() {
    ir::Expected<PlanResult> infeasible = plan(problem_, Bytes(1));
    if (infeasible) return Bytes(0);
    const ir::PlanError error = ir::takePayload(infeasible.takeError());
    EXPECT_EQ(error.code(), ir::ErrorCode::kInfeasible);
    EXPECT_TRUE(error.infeasible() && !error.infeasible()->holders.empty());
    return error.infeasible() ? error.infeasible()->smallestBudget : Bytes(0);
  }

  void expectProven(const Timetable& timetable, Bytes budget) {
    const ir::Schedule schedule = tests::toSchedule(graph_, target_, timetable, budget);
    for (const ir::Violation& violation : ir::verify({.graph = graph_,
                                          .schedule = schedule,
                                          .target = target_,
                                          .costs = &problem_.costs,
                                          .budget = budget})) {
      ADD_FAILURE() << "V" << violation.rule << " " << violation.message;
    }
  }

  std::string textOf(const Timetable& timetable, Bytes budget) const {
    PlanFile file = makePlanFile(graph_, target_,
                                 tests::toSchedule(graph_, target_, timetable, budget), budget);
    file.prefetchLimit = timetable.prefetchLimit;
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::cantFail(writePlan(file, os));
    return os.str();
  }

  uint64_t seed_;
  ir::Graph graph_;
  ir::Target target_;
  Problem problem_;
};

TEST_P(PlanProperty, KeepsItsPromises) {
  const int64_t smallest = smallestBudget().value();
  ASSERT_GT(smallest, 0);
  ir::Expected<PlanResult> below = plan(problem_, Bytes(smallest - target_.alignBytes));
  EXPECT_FALSE(static_cast<bool>(below));
  if (!below) llvm::consumeError(below.takeError());

  int64_t last = INT64_MAX;
  for (int k = 0; k < 5; ++k) {
    const Bytes budget(smallest + k * smallest / 4);
    ir::Expected<PlanResult> result = plan(problem_, budget);
    ASSERT_TRUE(static_cast<bool>(result)) << ir::describe(result.takeError());
    const Timetable& timetable = result->timetable;
    EXPECT_LE(timetable.devicePeak, budget);
    EXPECT_LE(timetable.stepTime.value(), last);
    EXPECT_GE(timetable.stepTime, result->bound);
    last = timetable.stepTime.value();
    // `lower` makes the same schedule from the plan's own decisions. Without the plan's prefetch
    // limit it makes another one, which fits as well.
    const Timetable same = llvm::cantFail(
        evaluateWithin(problem_, timetable.decisions, budget, timetable.prefetchLimit));
    EXPECT_EQ(textOf(same, budget), textOf(timetable, budget));
    const Timetable other =
        llvm::cantFail(evaluateWithin(problem_, timetable.decisions, budget, budget));
    EXPECT_LE(other.devicePeak, budget);
    expectProven(timetable, budget);
  }
}

// Pins by name hold in a plan that is proven, and every row says why it is there.
TEST_P(PlanProperty, RowsSayWhyAndPinnedPlansAreProven) {
  problem_.pins = {{.pattern = "h0", .action = ir::GapAction::kKeep},
                   {.pattern = "*w0", .action = ir::GapAction::kHost}};
  const std::set<std::string> words = {"pinned", "hidden", "waits", "cheap", "busy", "only"};
  const Bytes budget = smallestBudget();
  ir::Expected<PlanResult> result = plan(problem_, budget);
  ASSERT_TRUE(static_cast<bool>(result)) << ir::describe(result.takeError());
  for (const ir::DecisionRow& row : result->timetable.decisions.rows) {
    EXPECT_TRUE(words.count(row.why)) << "'" << row.why << "'";
    EXPECT_EQ(row.why == "pinned", row.pinned);
    const std::string& name = graph_.storage(row.storage).name;
    EXPECT_TRUE(name != "h0" || row.action == ir::GapAction::kKeep);
    EXPECT_TRUE(name != "w0" || row.action == ir::GapAction::kHost);
  }
  expectProven(result->timetable, budget);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlanProperty, testing::Values(1, 2, 4, 6, 9, 11));

}  // namespace
}  // namespace stowage::planner
