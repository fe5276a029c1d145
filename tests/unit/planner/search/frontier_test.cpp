// SPDX-License-Identifier: Apache-2.0
//
// All known plans of a problem: the grid of budgets, which plan answers which budget, and the
// smallest budget that has an answer.
#include "planner/search/frontier.h"

#include <gtest/gtest.h>

#include "planner/search/host_chain.h"
#include "tests/support/or_fail.h"
#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using tests::orFail;

constexpr int64_t kUnit = tests::kUnitBytes;
constexpr int64_t kUs = tests::kUnitTime;

// From the 8 units that `wide` needs to the 16 that everything needs. 48 steps of equal ratio are
// finer than the alignment of one unit, so every unit is a grid budget.
TEST(Frontier, TheGridReachesFromOneNodeToEverything) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const Frontier frontier = orFail(Frontier::make(table));
  ASSERT_EQ(frontier.grid().size(), 9U);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(frontier.grid()[i], (8 + int64_t(i)) * kUnit);
  EXPECT_EQ(frontier.firstAbove(8 * kUnit - 1), 0U);
  EXPECT_EQ(frontier.firstAbove(8 * kUnit), 1U);
  EXPECT_EQ(frontier.firstAbove(16 * kUnit), 9U);
}

// The offload is as fast as keeping everything. Where both fit, the plan that moves less answers.
TEST(Frontier, OfEquallyFastPlansTheOneThatMovesLessAnswers) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  Frontier frontier = orFail(Frontier::make(table));
  const KnownPlan* tight = frontier.findBest(16 * kUnit - 1);
  ASSERT_NE(tight, nullptr);
  EXPECT_EQ(tight->time, 21 * kUs);
  EXPECT_EQ(tight->peak, 8 * kUnit);
  EXPECT_EQ(tight->moved, 16 * kUnit);
  EXPECT_EQ(frontier.findBest(16 * kUnit), &frontier.keepAll());
}

// A pool may hold plans that are equally fast: rules give up more than they must.
TEST(Frontier, NoPlanOfAMainPoolThatFitsIsFasterThanTheAnswer) {
  int equallyFast = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const tests::SmallProblem step(tests::drawSmallStep(seed));
    Frontier frontier = orFail(Frontier::make(step.table));
    for (size_t i = 0; i < frontier.grid().size(); ++i) {
      const int64_t budget = frontier.grid()[i];
      const KnownPlan* best = frontier.findInPools(budget);
      if (best == nullptr || best == &frontier.keepAll() || !frontier.isMain(i)) continue;
      for (const KnownPlan& plan : frontier.pool(i)) {
        if (plan.peak > budget) continue;
        EXPECT_GE(plan.time, best->time) << "seed " << seed << " at " << budget;
        equallyFast += plan.time == best->time && plan.moved > best->moved ? 1 : 0;
      }
    }
  }
  EXPECT_GT(equallyFast, 0);
}

// A pool between main ones may hold a plan that the search at the main one above did not meet. It
// does not count, or that larger budget would be slower.
TEST(Frontier, WhatAMainPoolMissedIsNoAnswerBelowIt) {
  int missed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const tests::SmallProblem step(tests::drawSmallStep(seed));
    Frontier frontier = orFail(Frontier::make(step.table));
    int64_t above = 0;
    for (size_t i = frontier.grid().size(); i-- > 0;) {
      const int64_t budget = frontier.grid()[i];
      const KnownPlan* best = frontier.findInPools(budget);
      if (best == nullptr) continue;
      EXPECT_GE(best->time, above) << "seed " << seed << " at " << budget;
      for (const KnownPlan& plan : frontier.pool(i)) {
        missed += plan.peak <= budget && plan.time < above ? 1 : 0;
      }
      above = best->time;
    }
  }
  EXPECT_GT(missed, 0);
}

// waitingStep: 19 us while a must leave, 3 us once it may stay.
TEST(Frontier, MoreBudgetIsNeverSlowerAndTheLowestPlanIsTheLastThatAnswers) {
  const tests::SmallProblem step(tests::waitingStep());
  const GapTable& table = step.table;
  Frontier frontier = orFail(Frontier::make(table));
  EXPECT_EQ(frontier.findBest(8 * kUnit - 1), nullptr);
  for (int64_t budget = 8 * kUnit; budget <= 17 * kUnit; budget += kUnit / 2) {
    const KnownPlan* best = frontier.findBest(budget);
    ASSERT_NE(best, nullptr);
    EXPECT_LE(best->peak, budget);
    EXPECT_EQ(best->time, (budget < 16 * kUnit ? 19 : 3) * kUs) << "at " << budget;
  }
  const LowestPlan lowest = frontier.findLowest();
  ASSERT_NE(lowest.plan, nullptr);
  EXPECT_EQ(lowest.budget, 8 * kUnit);
  EXPECT_EQ(lowest.plan->time, 19 * kUs);
}

}  // namespace
}  // namespace stowage::planner
