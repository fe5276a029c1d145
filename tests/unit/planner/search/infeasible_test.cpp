// SPDX-License-Identifier: Apache-2.0
//
// An infeasible error names what would do: the device's bytes, the host's, or the pin in the way.
#include <gtest/gtest.h>

#include "planner/plan.h"
#include "tests/support/small_step.h"

namespace stowage::planner {
namespace {

using ir::Role;

/// Four weights of 4 units, each read by two nodes of its own, updated in between; an activation of
/// 6 that is made early, read late and is recomputable; at the widest node 5 units are needed.
tests::SmallStep makeStep() {
  tests::SmallStep step{.items = {{Role::kParameter, 4},
                                  {Role::kParameter, 4},
                                  {Role::kParameter, 4},
                                  {Role::kParameter, 4},
                                  {Role::kActivation, 6}},
                        .nodes = {{.op = "aten.mm.default", .time = 2, .results = {4}}}};
  for (int w = 0; w < 4; ++w) {
    step.nodes.push_back({.op = "test.read.default", .time = 4, .temporary = 1, .reads = {w}});
    step.nodes.push_back({.op = "aten.add_.Tensor", .time = 4, .reads = {w}, .updates = {w}});
  }
  step.nodes.push_back({.op = "test.read.default", .time = 1, .reads = {4}});
  return step;
}

class InfeasibleBudget : public testing::Test {
 protected:
  InfeasibleBudget()
      : step_(makeStep()),
        graph_(tests::toGraph(step_)),
        target_(tests::smallTarget()),
        problem_(tests::toProblem(step_, graph_, target_)) {}

  static Bytes units(int count) { return Bytes(count * tests::kUnitBytes); }
  ir::PlanError errorFor(const Problem& problem, Bytes budget) {
    ir::Expected<PlanResult> result = plan(problem, budget);
    EXPECT_FALSE(static_cast<bool>(result));
    if (result) return ir::PlanError(ir::ErrorCode::kInternal, "planned");
    return ir::takePayload(result.takeError());
  }

  tests::SmallStep step_;
  ir::Graph graph_;
  ir::Target target_;
  Problem problem_;
};

TEST_F(InfeasibleBudget, SaysHowMuchMoreEvenIfThatIsLittle) {
  const Bytes smallest = errorFor(problem_, units(3)).infeasible()->smallestBudget;
  const Bytes less = smallest - Bytes(1);
  const std::string text = errorFor(problem_, less).text();
  EXPECT_NE(text.find(std::to_string(less.value()) + " B"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(smallest.value()) + " B"), std::string::npos) << text;
}

TEST_F(InfeasibleBudget, OfTheDeviceNamesTheNodeAndTheBudget) {
  const ir::PlanError error = errorFor(problem_, units(3));
  ASSERT_TRUE(error.infeasible());
  EXPECT_EQ(error.code(), ir::ErrorCode::kInfeasible);
  EXPECT_EQ(error.infeasible()->space, "device");
  EXPECT_EQ(error.infeasible()->smallestBudget, units(6));
  EXPECT_FALSE(error.infeasible()->peakNode.empty());
  EXPECT_NE(error.text().find(error.infeasible()->peakNode), std::string::npos) << error.text();
  EXPECT_TRUE(static_cast<bool>(plan(problem_, units(6))));
}

TEST_F(InfeasibleBudget, NamesTheTemporariesOfTheNode) {
  problem_.costs.nodes[1].temporary = units(50);
  const ir::PlanError error = errorFor(problem_, units(20));
  ASSERT_TRUE(error.infeasible());
  ASSERT_FALSE(error.infeasible()->holders.empty());
  EXPECT_EQ(error.infeasible()->holders[0].storage, "temporaries of the node");
  EXPECT_EQ(error.infeasible()->holders[0].bytes, units(50));
}

// At 10 units two weights at least are on the host at any time; the host gives room for one.
TEST_F(InfeasibleBudget, OfTheHostNamesTheHost) {
  problem_.limits.host = units(4);
  const ir::PlanError error = errorFor(problem_, units(10));
  ASSERT_TRUE(error.infeasible());
  EXPECT_EQ(error.code(), ir::ErrorCode::kInfeasible);
  EXPECT_EQ(error.infeasible()->space, "host");
  EXPECT_NE(error.text().find("host"), std::string::npos) << error.text();
  ASSERT_FALSE(error.infeasible()->holders.empty());
  EXPECT_EQ(error.infeasible()->holders[0].bytes, units(4));

  problem_.limits.host = error.infeasible()->smallestBudget;
  ir::Expected<PlanResult> result = plan(problem_, units(10));
  ASSERT_TRUE(static_cast<bool>(result)) << ir::describe(result.takeError());
  EXPECT_LE(result->timetable.hostPeak, problem_.limits.host);
  EXPECT_LE(result->timetable.devicePeak, units(10));
}

TEST_F(InfeasibleBudget, NeverUsesMoreOfTheHostThanItMay) {
  for (int host = 0; host <= 20; host += 4) {
    problem_.limits.host = units(host);
    ir::Expected<PlanResult> result = plan(problem_, units(22));
    ASSERT_TRUE(static_cast<bool>(result)) << ir::describe(result.takeError());
    EXPECT_LE(result->timetable.hostPeak, units(host));
  }
}

// Inputs arrive on the host: with less than that not even keeping everything is possible.
TEST_F(InfeasibleBudget, KeepingAllNeedsTheHostForInputs) {
  step_.items.push_back({Role::kInput, 5});
  step_.nodes[0].reads = {5};
  graph_ = tests::toGraph(step_);
  Problem problem = tests::toProblem(step_, graph_, target_);
  problem.limits.host = units(4);
  const ir::PlanError error = errorFor(problem, units(100));
  ASSERT_TRUE(error.infeasible());
  EXPECT_EQ(error.infeasible()->space, "host");
  EXPECT_EQ(error.infeasible()->smallestBudget, units(5));
  ASSERT_EQ(error.infeasible()->holders.size(), 1U);
  EXPECT_EQ(error.infeasible()->holders[0].storage, "s5");
}

TEST_F(InfeasibleBudget, NamesThePinThatIsInTheWay) {
  problem_.pins = {{.pattern = "s4", .action = ir::GapAction::kHost},
                   {.pattern = "s1", .action = ir::GapAction::kKeep},
                   {.pattern = "s2*", .action = ir::GapAction::kHost}};
  const ir::PlanError error = errorFor(problem_, units(8));
  ASSERT_TRUE(error.infeasible());
  EXPECT_EQ(error.infeasible()->space, "device");
  ASSERT_EQ(error.notes().size(), 1U);
  EXPECT_EQ(error.notes()[0], "without the pin 's1=keep' it fits");
  EXPECT_TRUE(static_cast<bool>(plan(problem_, error.infeasible()->smallestBudget)));
}

TEST_F(InfeasibleBudget, APinThatMatchesNothingOrCanDoNothingIsAnError) {
  problem_.pins = {{.pattern = "s0", .action = ir::GapAction::kRecompute}};
  const ir::PlanError error = errorFor(problem_, units(100));
  EXPECT_EQ(error.code(), ir::ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.text(), "pin 's0=recompute': found no gap in which that is possible");

  ir::Expected<Problem> none = makeProblem(graph_, target_, {}, {}, {}, {{.pattern = "nobody*"}});
  ASSERT_FALSE(static_cast<bool>(none));
  llvm::consumeError(none.takeError());
}

// A pinned storage does what the pin says at every budget.
TEST_F(InfeasibleBudget, PinsHold) {
  problem_.pins = {{.pattern = "s0", .action = ir::GapAction::kHost},
                   {.pattern = "s4", .action = ir::GapAction::kRecompute}};
  for (const int budget : {8, 14, 100}) {
    ir::Expected<PlanResult> result = plan(problem_, units(budget));
    ASSERT_TRUE(static_cast<bool>(result)) << ir::describe(result.takeError());
    int hosted = 0;
    int made = 0;
    for (const ir::DecisionRow& row : result->timetable.decisions.rows) {
      if (row.storage.index() == 0) {
        ++hosted;
        EXPECT_EQ(row.action, ir::GapAction::kHost);
        EXPECT_TRUE(row.pinned);
        EXPECT_EQ(row.why, "pinned");
      }
      made += row.storage.index() == 4 && row.action == ir::GapAction::kRecompute ? 1 : 0;
    }
    EXPECT_EQ(hosted, 1) << "at " << budget;
    EXPECT_EQ(made, 1) << "at " << budget;
  }
}

}  // namespace
}  // namespace stowage::planner
