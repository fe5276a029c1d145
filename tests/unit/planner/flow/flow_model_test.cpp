// SPDX-License-Identifier: Apache-2.0
//
// The program's answers to small steps: what is given up, and what the step takes as it flows.
#include "planner/flow/flow_model.h"

#include <gtest/gtest.h>

#include "planner/search/known_plan.h"
#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::GapAction;

FlowAnswer ask(const GapTable& table, int64_t budget, bool mayHost, bool mayRecompute,
               LostLinkTime lost = {}) {
  const RecomputeCosts costs = findRecomputeCosts(table);
  FlowChoices choices;
  for (size_t g = 0; g < table.gaps().size(); ++g) {
    choices.mayHost.push_back(mayHost && table.gaps()[g].mayHost);
    choices.mayRecompute.push_back(mayRecompute && costs[g].has_value());
  }
  const Actions none(table.gaps().size(), GapAction::kKeep);
  return chooseByFlow(
      table, costs, choices,
      {.budget = budget, .loads = computeNodeLoads(table, none), .lost = std::move(lost)});
}

TEST(FlowModel, TheWorkedStepGivesUpTheGapOverTheWideNode) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const FlowAnswer tight = ask(table, tests::units(8), true, true);
  EXPECT_TRUE(tight.fits);
  EXPECT_EQ(tight.actions, (Actions{GapAction::kKeep, GapAction::kHost, GapAction::kKeep}));
  EXPECT_EQ(tight.time, tests::us(21));
  const FlowAnswer wide = ask(table, tests::units(16), true, true);
  EXPECT_TRUE(wide.fits);
  EXPECT_EQ(wide.actions, Actions(3, GapAction::kKeep));
  EXPECT_EQ(wide.time, tests::us(21));
}

// The offload has 12 us for its 8 us, from node 0 to 2; the prefetch has its 8 us before node 4.
TEST(FlowModel, ComputeWaitsForWhatALinkHasLessTimeFor) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const auto timeWith = [&](std::vector<int64_t> in, std::vector<int64_t> out) {
    const FlowAnswer answer =
        ask(table, tests::units(8), true, true, {.in = std::move(in), .out = std::move(out)});
    EXPECT_TRUE(answer.fits);
    return answer.time;
  };
  const int64_t us = tests::us(1);
  EXPECT_EQ(timeWith({0, 0, 0, 0, 2 * us}, {}), tests::us(23));
  EXPECT_EQ(timeWith({0, 0, 2 * us, 0, 0}, {}), tests::us(21));
  EXPECT_EQ(timeWith({}, {0, 0, 2 * us, 0, 0}), tests::us(21));
  EXPECT_EQ(timeWith({}, {0, 0, 6 * us, 0, 0}), tests::us(23));
}

// A recompute of `make` takes 1 us, copies take none of compute's time.
TEST(FlowModel, ARecomputeIsTakenWhereNoCopyIsAllowed) {
  tests::SmallStep small = tests::workedStepWith(8);
  small.nodes[0].op = "aten.mm.default";
  const tests::SmallProblem step(small);
  const FlowAnswer copies = ask(step.table, tests::units(8), true, true);
  EXPECT_EQ(copies.actions[1], GapAction::kHost);
  const FlowAnswer recomputes = ask(step.table, tests::units(8), false, true);
  EXPECT_TRUE(recomputes.fits);
  EXPECT_EQ(recomputes.actions[1], GapAction::kRecompute);
  EXPECT_EQ(recomputes.time, tests::us(22));
}

TEST(FlowModel, SaysWhereTheBytesDoNotFit) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  EXPECT_FALSE(ask(table, tests::units(7), true, true).fits);
  EXPECT_FALSE(ask(table, tests::units(8), false, false).fits);
}

}  // namespace
}  // namespace stowage::planner
