// SPDX-License-Identifier: Apache-2.0
#include "planner/correct/correct_costs.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"
#include "tests/support/or_fail.h"

namespace stowage::tests {
namespace {

/// Two ops of 10 each, with launch overhead 30 each while times are taken: a step takes 60 then.
class CorrectCosts : public testing::Test {
 protected:
  CorrectCosts() {
    schedule_.commands.resize(2);
    for (size_t i = 0; i < 2; ++i) {
      schedule_.commands[i].node = ir::NodeId(i);
      alone_.bySignature[ir::nodeSignature(graph_, ir::NodeId(i))] = {.work = Nanoseconds(10)};
    }
    for (int64_t at = 0; at < 300; at += 60) {
      ir::StepTimes step;
      for (int64_t i = 0; i < 2; ++i) {
        const Nanoseconds begin(at + 30 * i);
        const Nanoseconds end = begin + Nanoseconds(30);
        step.commands.emplace_back(ir::CommandTimes{begin, end, end, end + Nanoseconds(10)});
      }
      steps_.push_back(step);
    }
  }

  ir::CostTable correct(std::optional<Nanoseconds> untimed,
                        std::optional<Nanoseconds> scalars = std::nullopt) const {
    return orFail(planner::correctCosts(
        alone_,
        {graph_, schedule_, ir::Target{}, steps_, {.untimed = untimed, .scalars = scalars}}));
  }
  /// By node, under a launch mode.
  std::vector<int64_t> timesOf(const ir::CostTable& table,
                               ir::GraphMode mode = ir::GraphMode::kNone) const {
    std::vector<int64_t> times;
    const ir::NodeCosts costs = orFail(ir::resolveCosts(graph_, table, mode));
    for (size_t i = 0; i < costs.nodes.size(); ++i) {
      times.push_back(costs.time(ir::NodeId(i)).value());
    }
    return times;
  }

  ir::Graph graph_ =
      orFail(ir::parseGraph("graph @g version=1 device=\"cuda\" {\n"
                            "input %x : f32[64]\n"
                            "%y : f32[64] = aten.neg.default(%x)\n"
                            "%u : f32[64] = aten.exp.default(%y)\n}\n"));
  ir::Schedule schedule_;
  ir::CostTable alone_;
  std::vector<ir::StepTimes> steps_;
};

using Times = std::vector<int64_t>;

TEST_F(CorrectCosts, LaunchOverheadCountsAsFarAsStepsWithoutTimesAllow) {
  EXPECT_EQ(timesOf(correct(Nanoseconds(60))), (Times{30, 30}));
  EXPECT_EQ(timesOf(correct(Nanoseconds(40))), (Times{20, 20}));
  EXPECT_EQ(timesOf(correct(Nanoseconds(90))), (Times{30, 30})) << "slower without times: noise";
  // Not launch-bound at all, but for the scale it could have at most.
  EXPECT_EQ(timesOf(correct(Nanoseconds(15))), (Times{10, 10}));
  EXPECT_EQ(timesOf(correct(std::nullopt)), (Times{30, 30}));
}

TEST_F(CorrectCosts, LaunchOverheadAloneIsScaledWhereItWasNotSeen) {
  for (auto& [signature, cost] : alone_.bySignature) cost.launch = Nanoseconds(1000);
  steps_.resize(1);
  EXPECT_EQ(timesOf(correct(Nanoseconds(40))), (Times{20, 20}));
  EXPECT_EQ(timesOf(correct(std::nullopt)), (Times{1000, 1000}));
}

TEST_F(CorrectCosts, WhatScalarsTakeIsKeptAndNoWork) {
  EXPECT_EQ(correct(Nanoseconds(60), Nanoseconds(50)).scalars, Nanoseconds(50));
  alone_.scalars = Nanoseconds(400);
  const ir::CostTable kept = correct(Nanoseconds(60));
  EXPECT_EQ(kept.scalars, Nanoseconds(400)) << "what the steps say nothing of stays";
  for (const auto& [signature, cost] : kept.bySignature) EXPECT_EQ(cost.work, Nanoseconds(10));
}

TEST_F(CorrectCosts, GraphsDoNotWaitForLaunches) {
  EXPECT_EQ(timesOf(correct(Nanoseconds(60)), ir::GraphMode::kWhole), (Times{10, 10}));
}

// 16 MiB came from the other rank in 2 ms.
TEST(CorrectCostsOfRanks, TheLinkHasTheRateThatItHadInSteps) {
  const ir::Graph graph = orFail(ir::parseGraph(R"(graph @g version=1 ranks=2 {
  input %g : f32[8388608]
  %m : f32[8388608] = stowage.all_to_all.default(%g, 2)
})"));
  ir::Schedule schedule;
  schedule.commands.resize(1);
  schedule.commands[0].node = ir::NodeId(0);
  schedule.commands[0].stream = ir::Stream::kCollective;
  ir::CostTable alone;
  const std::string signature = ir::nodeSignature(graph, ir::NodeId(0));
  alone.bySignature[signature] = {.work = Nanoseconds(500'000)};
  alone.links.betweenRanks.bandwidth = BytesPerSecond(1'000'000);
  const planner::TypicalTimes times = {.work = {Nanoseconds(2'000'000)},
                                       .launch = {Nanoseconds(7)}};
  const ir::CostTable corrected = planner::correctTimes(alone, graph, schedule, times);
  EXPECT_EQ(corrected.links.betweenRanks.bandwidth.value(), 8'388'608'000);
  EXPECT_EQ(corrected.bySignature.at(signature).work, Nanoseconds(500'000)) << "a rank's own";
  EXPECT_EQ(corrected.bySignature.at(signature).launch, Nanoseconds(7));
}

}  // namespace
}  // namespace stowage::tests
