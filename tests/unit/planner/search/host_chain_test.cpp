// SPDX-License-Identifier: Apache-2.0
//
// Plans for one device budget with ever less on the host, and the order in which answers are
// compared.
#include "planner/search/host_chain.h"

#include <gtest/gtest.h>

#include "tests/support/or_fail.h"
#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using tests::orFail;

constexpr int64_t kUnit = tests::kUnitBytes;
constexpr int64_t kUs = tests::kUnitTime;

// a cannot be recomputed, so with 8 units of the device the host needs 8. The first plan of the
// chain is the last.
TEST(HostChain, TheWorkedStepHasOnePlanForTheHost) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const BudgetSearch search = orFail(BudgetSearch::make(table));
  const KnownPlan offload = search.run({.budget = 8 * kUnit}).front();
  HostChain chain(search, 8 * kUnit, offload, offload);
  const KnownPlan* found = chain.find(8 * kUnit, INT64_MAX);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->time, 21 * kUs);
  EXPECT_EQ(chain.find(8 * kUnit - 1, INT64_MAX), nullptr);
}

// The three ways of hostOrTimeStep. The chain is given the ends and searches for what is between.
TEST(HostChain, APlanBetweenTheEndsIsSearchedFor) {
  const tests::SmallProblem step(tests::hostOrTimeStep());
  const GapTable& table = step.table;
  const BudgetSearch search = orFail(BudgetSearch::make(table));
  const KnownPlan* first = nullptr;
  const Pool pool = search.run({.budget = 8 * kUnit});
  for (const KnownPlan& plan : pool) {
    if (plan.peak <= 8 * kUnit && (first == nullptr || isBetter(plan, *first))) first = &plan;
  }
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(first->hostPeak, 8 * kUnit);
  HostChain chain(search, 8 * kUnit, *first, *search.findLeastHost(8 * kUnit, 0));

  const auto timeWith = [&](int64_t host) { return chain.find(host, INT64_MAX)->time; };
  EXPECT_EQ(timeWith(0), 43 * kUs);
  EXPECT_EQ(timeWith(4 * kUnit - 1), 43 * kUs);
  EXPECT_EQ(timeWith(4 * kUnit), 37 * kUs);
  EXPECT_EQ(timeWith(8 * kUnit - 1), 37 * kUs);
  EXPECT_EQ(timeWith(8 * kUnit), 34 * kUs);
  EXPECT_EQ(chain.find(8 * kUnit - 1, 37 * kUs), nullptr) << "only faster plans are asked for";
}

TEST(HostChain, AnAnswerIsBetterByTimeThenByTransfersThenByPeak) {
  const KnownPlan plan{.peak = 5, .time = 10, .moved = 7};
  EXPECT_TRUE(isBetter({.peak = 9, .time = 9, .moved = 9}, plan));
  EXPECT_TRUE(isBetter({.peak = 9, .time = 10, .moved = 6}, plan));
  EXPECT_TRUE(isBetter({.peak = 4, .time = 10, .moved = 7}, plan));
  EXPECT_FALSE(isBetter({.peak = 4, .time = 10, .moved = 8}, plan));
  EXPECT_FALSE(isBetter(plan, plan));
}

}  // namespace
}  // namespace stowage::planner
