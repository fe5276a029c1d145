// SPDX-License-Identifier: Apache-2.0
//
// What evaluation tells the search about a list of actions, and how far it evaluates what is of no
// use.
#include "planner/search/known_plan.h"

#include <gtest/gtest.h>

#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"
#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using enum ir::GapAction;

constexpr int64_t kUnit = tests::kUnitBytes;
constexpr int64_t kUs = tests::kUnitTime;

const Actions kOffloadA = {kKeep, kHost, kKeep};

std::vector<int64_t> loadsInUnits(const Problem& problem, const Actions& actions) {
  std::vector<int64_t> loads = computeNodeLoads(GapTable(problem), actions);
  for (int64_t& bytes : loads) bytes /= kUnit;
  return loads;
}

TEST(KnownPlan, TheWorkedStepWithItsOffload) {
  const tests::WorkedStep step;
  const Tried tried = tryActions(GapTable(step.problem()), kOffloadA, 8 * kUnit, {});
  ASSERT_TRUE(tried.plan);
  EXPECT_FALSE(tried.isTooSlow);
  EXPECT_EQ(tried.peak, 8 * kUnit);
  EXPECT_EQ(tried.plan->peak, 8 * kUnit);
  EXPECT_EQ(tried.plan->hostPeak, 8 * kUnit);
  EXPECT_EQ(tried.plan->time, 21 * kUs);
  EXPECT_EQ(tried.plan->moved, (8 + 8) * kUnit);
  EXPECT_EQ(tried.plan->prefetchLimit, 8 * kUnit);
  EXPECT_EQ(tried.plan->actions, kOffloadA);
}

// At half the speed either copy takes 16 us: the offload has 10 us before node 2, the prefetch 8 us
// before node 4.
TEST(KnownPlan, SaysWhereComputeWaits) {
  const tests::WorkedStep quick;
  EXPECT_TRUE(tryActions(GapTable(quick.problem()), kOffloadA, 8 * kUnit, {}).stalls.empty());
  tests::SmallStep small = tests::workedStepWith(8);
  small.outPerUnit = 2;
  small.inPerUnit = 2;
  const tests::SmallProblem slow(small);
  const Tried tried = tryActions(slow.table, kOffloadA, 8 * kUnit, {});
  ASSERT_EQ(tried.stalls.size(), 2U);
  EXPECT_EQ(tried.stalls[0].node, ir::NodeId(2));
  EXPECT_TRUE(tried.stalls[0].isOut);
  EXPECT_EQ(tried.stalls[0].time, Nanoseconds(6 * kUs));
  EXPECT_EQ(tried.stalls[1].node, ir::NodeId(4));
  EXPECT_FALSE(tried.stalls[1].isOut);
  EXPECT_EQ(tried.stalls[1].time, Nanoseconds(8 * kUs));
}

// Keeping everything needs 16 units at once. A plan that takes 21 us is not less than 21 us.
TEST(KnownPlan, WhatIsTooHighOrTooSlowIsOfNoUse) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const Tried high = tryActions(table, Actions(3, kKeep), 8 * kUnit, {.peak = 16 * kUnit - 1});
  EXPECT_FALSE(high.plan);
  EXPECT_FALSE(high.isTooSlow);
  EXPECT_EQ(high.peak, 16 * kUnit);
  EXPECT_TRUE(tryActions(table, kOffloadA, 8 * kUnit, {.time = 21 * kUs}).isTooSlow);
  EXPECT_FALSE(tryActions(table, kOffloadA, 8 * kUnit, {.time = 21 * kUs + 1}).isTooSlow);
}

TEST(KnownPlan, ImpossibleActionsGiveNoPlanAndNoLoads) {
  const tests::WorkedStep step;
  const Actions recompute = {kKeep, kRecompute, kKeep};
  EXPECT_FALSE(tryActions(GapTable(step.problem()), recompute, 8 * kUnit, {}).plan);
  EXPECT_TRUE(loadsInUnits(step.problem(), recompute).empty());
}

// The prefetch counts from its deadline, node 4, on: node 3 has nothing. A recompute counts for the
// node behind it: `make` with 4 units of temporaries runs again just before node 4.
TEST(KnownPlan, LoadsAreThoseOfTheNodeAndTheRecomputesBeforeIt) {
  const tests::WorkedStep worked;
  EXPECT_EQ(loadsInUnits(worked.problem(), Actions(3, kKeep)),
            (std::vector<int64_t>{8, 8, 16, 8, 8}));
  EXPECT_EQ(loadsInUnits(worked.problem(), kOffloadA), (std::vector<int64_t>{8, 8, 8, 0, 8}));

  tests::SmallStep small = tests::workedStepWith(8);
  small.nodes[0].op = "aten.mm.default";
  small.nodes[0].temporary = 4;
  const tests::SmallProblem step(small);
  EXPECT_EQ(loadsInUnits(step.problem, {kKeep, kRecompute, kKeep}),
            (std::vector<int64_t>{12, 8, 8, 0, 12}));
}

}  // namespace
}  // namespace stowage::planner
