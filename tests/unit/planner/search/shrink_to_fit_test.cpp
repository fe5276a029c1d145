// SPDX-License-Identifier: Apache-2.0
//
// The same actions with less room for prefetches: how low the peak goes, what that costs, and that
// effort is limited.
#include "planner/search/shrink_to_fit.h"

#include <gtest/gtest.h>

#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using ir::GapAction;

constexpr int64_t kUnit = tests::kUnitBytes;
constexpr int64_t kUs = tests::kUnitTime;

const Actions kOffloadA = {GapAction::kKeep, GapAction::kHost, GapAction::kKeep};

/// With 16 units the prefetch of a begins beside `wide`, when the offload is over.
KnownPlan planWithRoom(const GapTable& table) {
  Tried tried = tryActions(table, kOffloadA, 16 * kUnit, {});
  EXPECT_TRUE(tried.plan);
  return tried.plan.value_or(KnownPlan{});
}

// The prefetch moves behind `wide`: 8 units. It is hidden there as well.
TEST(ShrinkToFit, TheWorkedStepNeedsHalfTheBytesForTheSameTime) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const KnownPlan plan = planWithRoom(table);
  EXPECT_EQ(plan.peak, 16 * kUnit);
  const std::vector<KnownPlan> lower = shrinkToFit(table, plan, 64);
  ASSERT_EQ(lower.size(), 1U);
  EXPECT_EQ(lower[0].peak, 8 * kUnit);
  EXPECT_EQ(lower[0].time, 21 * kUs);
  EXPECT_EQ(lower[0].actions, kOffloadA);
  EXPECT_TRUE(shrinkToFit(table, lower[0], 64).empty()) << "nothing is lower";
}

// `other` takes 4 us. Beside `wide` the prefetch runs from 11 to 19, and `last` ends at 20. Behind
// `wide` it runs from 12 to 20, and `last` ends at 21.
TEST(ShrinkToFit, ALowerPeakMayTakeLonger) {
  tests::SmallStep small = tests::workedStepWith(8);
  small.nodes[3].time = 4;
  const tests::SmallProblem step(small);
  const GapTable& table = step.table;
  const KnownPlan plan = planWithRoom(table);
  EXPECT_EQ(plan.time, 20 * kUs);
  const std::vector<KnownPlan> lower = shrinkToFit(table, plan, 64);
  ASSERT_EQ(lower.size(), 1U);
  EXPECT_EQ(lower[0].peak, 8 * kUnit);
  EXPECT_EQ(lower[0].time, 21 * kUs);
}

// The plan's own prefetch limit of 16 units is tried first and is too much; 8 units come second.
TEST(ShrinkToFit, EffortIsCountedInEvaluations) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const KnownPlan plan = planWithRoom(table);
  EXPECT_TRUE(shrinkToFit(table, plan, 0).empty());
  EXPECT_TRUE(shrinkToFit(table, plan, 1).empty());
  EXPECT_EQ(shrinkToFit(table, plan, 2).size(), 1U);
}

}  // namespace
}  // namespace stowage::planner
