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
               LostLinkTime lost = {}, std::vector<int64_t> watched = {}) {
  const RecomputeCosts costs = findRecomputeCosts(table);
  FlowChoices choices;
  for (size_t g = 0; g < table.gaps().size(); ++g) {
    choices.mayHost.push_back(mayHost && table.gaps()[g].mayHost);
    choices.mayRecompute.push_back(mayRecompute && costs[g].has_value());
  }
  const Actions none(table.gaps().size(), GapAction::kKeep);
  return chooseByFlow(table, costs, choices,
                      {.budget = budget,
                       .loads = computeNodeLoads(table, none),
                       .watched = std::move(watched),
                       .lost = std::move(lost)});
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
    EXPECT_EQ(answer.waits, answer.time - tests::us(21));
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

// Nodes 3 and 4 are in one slot, in which node 4 has the most bytes: `c` is away there. Node 3
// needs `c`, so it fits if `b` is away, which nobody asks for unless that node is watched.
TEST(FlowModel, BytesFitAtAWatchedNodeToo) {
  const tests::SmallProblem step(tests::SmallStep{
      .items = {{ir::Role::kActivation, 8}, {ir::Role::kActivation, 8}},
      .nodes = {{.op = "test.make_c.default", .time = 100, .results = {1}},
                {.op = "test.make_b.default", .time = 100, .results = {0}},
                {.op = "test.wait.default", .time = 100},
                {.op = "test.wide.default", .time = 0, .temporary = 12, .reads = {1}},
                {.op = "test.wider.default", .time = 100, .temporary = 13, .reads = {0}},
                {.op = "test.wait.default", .time = 100},
                {.op = "test.read.default", .time = 100, .reads = {1}}}});
  const auto isAway = [&](const FlowAnswer& answer, size_t storage, int64_t node) {
    for (size_t g = 0; g < answer.actions.size(); ++g) {
      const Gap& gap = step.table.gaps()[g];
      const bool isAtNode = gap.begin < node && node < gap.end;
      if (gap.storage.index() == storage && isAtNode && answer.actions[g] == GapAction::kHost)
        return true;
    }
    return false;
  };
  const FlowAnswer blind = ask(step.table, tests::units(22), true, false);
  EXPECT_TRUE(isAway(blind, 1, 4));
  EXPECT_FALSE(isAway(blind, 0, 3));
  const FlowAnswer watching = ask(step.table, tests::units(22), true, false, {}, {3});
  EXPECT_TRUE(isAway(watching, 1, 4));
  EXPECT_TRUE(isAway(watching, 0, 3));
}

TEST(FlowModel, SaysWhereTheBytesDoNotFit) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  EXPECT_FALSE(ask(table, tests::units(7), true, true).fits);
  EXPECT_FALSE(ask(table, tests::units(8), false, false).fits);
}

}  // namespace
}  // namespace stowage::planner
