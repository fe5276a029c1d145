// SPDX-License-Identifier: Apache-2.0
//
// What more of something would save, in steps that can be worked out by hand.
#include "planner/what_if.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/or_fail.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using tests::orFail;
using tests::units;
using tests::us;

/// `a` of 1 unit is in the way of 9 units at `wide`: it is copied out and in, 1 us each, and
/// compute waits for both. 10 units hold everything.
const tests::SmallStep kStep = {.items = {{ir::Role::kActivation, 1}},
                                .nodes = {{.op = "test.make.default", .time = 1, .results = {0}},
                                          {.op = "test.wide.default", .time = 1, .temporary = 9},
                                          {.op = "test.read.default", .time = 1, .reads = {0}}}};

TEST(WhatIf, ATenthMoreMemoryAndAFasterLinkSaveWhatThePlannerThenPlans) {
  const tests::SmallProblem step(kStep);
  const std::vector<WhatIf> answers =
      orFail(askWhatIf(step.problem, Bytes(units(9)), Nanoseconds(us(5))));
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].change, Change::kMemory);
  EXPECT_EQ(answers[0].bytes, Bytes(units(1)));
  EXPECT_EQ(answers[0].saved, Nanoseconds(us(2)));
  EXPECT_FALSE(answers[0].isAtMost);
  EXPECT_EQ(answers[1].change, Change::kLink);
  EXPECT_EQ(answers[1].rate, step.problem.costs.links.hostToDevice.bandwidth);
  EXPECT_EQ(answers[1].saved, Nanoseconds(us(1)));
}

// What more brings is beyond what the same question brings again.
TEST(WhatIf, AWorseThanPlannedStepIsPlannedAgain) {
  const tests::SmallProblem step(kStep);
  const std::vector<WhatIf> answers =
      orFail(askWhatIf(step.problem, Bytes(units(9)), Nanoseconds(us(8))));
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].change, Change::kAgain);
  EXPECT_EQ(answers[0].saved, Nanoseconds(us(3)));
  EXPECT_EQ(answers[1].saved, Nanoseconds(us(2)));
}

// 37 us with 4 units of the host, 34 without a limit (hostOrTimeStep).
TEST(WhatIf, ALimitOfTheHostThatBindsIsNamed) {
  const tests::SmallProblem step(tests::hostOrTimeStep());
  Problem problem = step.problem;
  problem.limits.host = Bytes(units(4));
  const std::vector<WhatIf> answers =
      orFail(askWhatIf(problem, Bytes(units(8)), Nanoseconds(us(37))));
  const auto host = std::find_if(answers.begin(), answers.end(), [](const WhatIf& answer) {
    return answer.change == Change::kHostMemory;
  });
  ASSERT_NE(host, answers.end());
  EXPECT_EQ(host->saved, Nanoseconds(us(3)));
}

// Of many nodes only the least time is asked for.
TEST(WhatIf, ALargeStepIsAskedForTheLeastTime) {
  tests::SmallStep large = kStep;
  large.nodes.insert(large.nodes.end(), 1600, {.op = "test.other.default", .time = 1});
  const tests::SmallProblem step(large);
  const std::vector<WhatIf> answers =
      orFail(askWhatIf(step.problem, Bytes(units(9)), Nanoseconds(us(1700))));
  ASSERT_FALSE(answers.empty());
  for (const WhatIf& answer : answers) {
    EXPECT_TRUE(answer.isAtMost);
    EXPECT_LE(answer.saved, Nanoseconds(us(1700 - 1603)));
  }
  const auto withRanks =
      orFail(askWhatIf(step.problem, Bytes(units(9)), Nanoseconds(us(1700)), Nanoseconds(us(97))));
  EXPECT_TRUE(withRanks.empty()) << "waits for other ranks are not the link's to the host";
}

}  // namespace
}  // namespace stowage::planner
