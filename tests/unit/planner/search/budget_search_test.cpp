// SPDX-License-Identifier: Apache-2.0
//
// One search for one budget: what it finds for the worked step, which plans are of no use to it,
// the plan with the least on the host, and what an answer keeps in place.
#include "planner/search/budget_search.h"

#include <gtest/gtest.h>

#include "tests/support/or_fail.h"
#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using ir::GapAction;
using tests::orFail;

constexpr int64_t kUnit = tests::kUnitBytes;
constexpr int64_t kUs = tests::kUnitTime;

const Actions kOffloadA = {GapAction::kKeep, GapAction::kHost, GapAction::kKeep};

// The first rule offloads a, and its plan takes 21 us. That is the bound, so the search ends.
TEST(BudgetSearch, OneRuleSolvesTheWorkedStep) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const BudgetSearch search = orFail(BudgetSearch::make(table));
  EXPECT_EQ(search.keepAll().peak, 16 * kUnit);
  const Pool pool = search.run({.budget = 8 * kUnit});
  ASSERT_EQ(pool.size(), 1U);
  EXPECT_EQ(pool[0].actions, kOffloadA);
  EXPECT_EQ(pool[0].peak, 8 * kUnit);
  EXPECT_EQ(pool[0].hostPeak, 8 * kUnit);
  EXPECT_EQ(pool[0].moved, 16 * kUnit);
  EXPECT_EQ(pool[0].time, 21 * kUs);
}

TEST(BudgetSearch, OnlyPlansThatAreFasterThanTheGoalAreOfUse) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const BudgetSearch search = orFail(BudgetSearch::make(table));
  EXPECT_TRUE(search.run({.budget = 8 * kUnit, .slowest = 21 * kUs}).empty());
  EXPECT_EQ(search.run({.budget = 8 * kUnit, .slowest = 21 * kUs + 1}).size(), 1U);
}

// The ends of hostOrTimeStep: the search for time takes 8 units of the host, the other one none.
TEST(BudgetSearch, LessOnTheHostIsPaidForWithRecomputes) {
  const tests::SmallProblem step(tests::hostOrTimeStep());
  const GapTable& table = step.table;
  const BudgetSearch search = orFail(BudgetSearch::make(table));
  int64_t fastest = INT64_MAX;
  for (const KnownPlan& plan : search.run({.budget = 8 * kUnit})) {
    if (plan.peak <= 8 * kUnit) fastest = std::min(fastest, plan.time);
  }
  EXPECT_EQ(fastest, 34 * kUs);
  const std::optional<KnownPlan> least = search.findLeastHost(8 * kUnit, /*need=*/0);
  ASSERT_TRUE(least);
  EXPECT_EQ(least->hostPeak, 0);
  EXPECT_EQ(least->moved, 0);
  EXPECT_EQ(least->time, 43 * kUs);
}

// With 16 units a may stay. In the worked step that leaves the time at 21 us, so an answer keeps
// it. In waitingStep it would be faster, which is another answer than the one that was found.
TEST(BudgetSearch, AnAnswerKeepsInPlaceWhatLeavesItsTimeAsItIs) {
  const tests::WorkedStep worked;
  const GapTable table(worked.problem());
  const BudgetSearch search = orFail(BudgetSearch::make(table));
  const KnownPlan offload = search.run({.budget = 8 * kUnit}).front();
  EXPECT_EQ(search.settle(offload, 16 * kUnit, kUnlimited).moved, 0);
  EXPECT_EQ(search.settle(offload, 8 * kUnit, kUnlimited).moved, 16 * kUnit);

  const tests::SmallProblem waiting(tests::waitingStep());
  const GapTable& waitingTable = waiting.table;
  const BudgetSearch waitingSearch = orFail(BudgetSearch::make(waitingTable));
  const KnownPlan slow = waitingSearch.run({.budget = 8 * kUnit}).front();
  EXPECT_EQ(slow.time, 19 * kUs);
  EXPECT_EQ(waitingSearch.settle(slow, 16 * kUnit, kUnlimited).time, 19 * kUs);
}

}  // namespace
}  // namespace stowage::planner
