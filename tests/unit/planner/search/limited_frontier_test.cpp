// SPDX-License-Identifier: Apache-2.0
//
// Answers under a limit of the host: what a limit costs, the smallest limit and the smallest budget
// that work.
#include "planner/search/limited_frontier.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/or_fail.h"
#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using tests::orFail;

constexpr int64_t kUnit = tests::kUnitBytes;
constexpr int64_t kUs = tests::kUnitTime;

/// A random small step whose limits may change between questions.
struct DrawnStep {
  explicit DrawnStep(uint64_t seed) : step(tests::drawSmallStep(seed)) {}
  LimitedFrontier makeFrontier() const { return orFail(LimitedFrontier::make(table)); }

  const tests::SmallProblem step;
  Problem problem = step.problem;
  const GapTable table{problem};
};

// a cannot be recomputed. Below 8 units of the host it must stay, which takes 16 of the device.
TEST(LimitedFrontier, TheWorkedStepNeedsTheHostOrTheDevice) {
  const tests::WorkedStep step;
  Problem problem = step.problem();
  const GapTable table(problem);
  LimitedFrontier frontier = orFail(LimitedFrontier::make(table));
  EXPECT_FALSE(frontier.isLimited());
  EXPECT_EQ(frontier.findLowest().budget, 8 * kUnit);
  EXPECT_EQ(frontier.findLeastHost(8 * kUnit).bytes, 8 * kUnit);
  EXPECT_EQ(frontier.findLeastHost(16 * kUnit).bytes, 0);

  problem.limits.host = Bytes(8 * kUnit);
  ASSERT_NE(frontier.findBest(8 * kUnit), nullptr);
  EXPECT_EQ(frontier.findBest(8 * kUnit)->time, 21 * kUs);

  problem.limits.host = Bytes(8 * kUnit - 1);
  EXPECT_TRUE(frontier.isLimited());
  EXPECT_EQ(frontier.findBest(8 * kUnit), nullptr);
  EXPECT_EQ(frontier.findBest(16 * kUnit), &frontier.keepAll());
  EXPECT_EQ(frontier.findLowest().budget, 16 * kUnit);
}

// The three ways of hostOrTimeStep. Limits are asked for in an order in which later questions could
// be answered from what earlier ones left behind.
TEST(LimitedFrontier, LessOfTheHostIsNeverFaster) {
  const tests::SmallProblem step(tests::hostOrTimeStep());
  Problem problem = step.problem;
  const GapTable table(problem);
  LimitedFrontier frontier = orFail(LimitedFrontier::make(table));
  const auto timeWith = [&](int64_t host) {
    problem.limits.host = Bytes(host);
    const KnownPlan* best = frontier.findBest(8 * kUnit);
    EXPECT_TRUE(best == nullptr || best->hostPeak <= host);
    return best == nullptr ? -1 : best->time;
  };
  EXPECT_EQ(timeWith(4 * kUnit), 37 * kUs);
  EXPECT_EQ(timeWith(0), 43 * kUs);
  EXPECT_EQ(timeWith(8 * kUnit), 34 * kUs);
  EXPECT_EQ(timeWith(8 * kUnit - 1), 37 * kUs);
  EXPECT_EQ(timeWith(4 * kUnit - 1), 43 * kUs);
  EXPECT_EQ(frontier.findLeastHost(8 * kUnit).bytes, 0);
}

// An input of 5 units arrives on the host in every step, whatever the plan.
TEST(LimitedFrontier, InputsNeedTheirPlaceOnTheHost) {
  const tests::SmallProblem step(
      {.items = {{ir::Role::kInput, 5}}, .nodes = {{.op = "test.read.default", .reads = {0}}}});
  Problem problem = step.problem;
  const GapTable table(problem);
  LimitedFrontier frontier = orFail(LimitedFrontier::make(table));
  problem.limits.host = Bytes(5 * kUnit - 1);
  EXPECT_EQ(frontier.findBest(100 * kUnit), nullptr);
  EXPECT_EQ(frontier.findLowest().plan, nullptr);
  EXPECT_EQ(frontier.findLeastHost(100 * kUnit).bytes, 5 * kUnit);
  problem.limits.host = Bytes(5 * kUnit);
  EXPECT_NE(frontier.findBest(100 * kUnit), nullptr);
}

// An ended search for the least host names one that works, and leaves later answers whole.
TEST(LimitedFrontier, AnEndedSearchNamesAHostLimitThatWorks) {
  int ended = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    DrawnStep drawn(seed);
    LimitedFrontier whole = drawn.makeFrontier();
    const int64_t peak = whole.keepAll().peak;
    for (int64_t budget = kUnit; budget <= peak; budget += kUnit) {
      drawn.problem.limits.host = Bytes(0);
      const LeastHost expected = whole.findLeastHost(budget);
      SearchWatch watch([] { return true; }, nullptr);
      LimitedFrontier frontier = drawn.makeFrontier();
      frontier.setWatch(&watch);
      const LeastHost early = frontier.findLeastHost(budget);
      frontier.setWatch(nullptr);
      ASSERT_EQ(early.plan == nullptr, expected.plan == nullptr) << seed;
      if (early.plan == nullptr) continue;
      EXPECT_GE(early.bytes, expected.bytes);
      ended += watch.wasEnded() ? 1 : 0;
      EXPECT_EQ(frontier.findLeastHost(budget).bytes, expected.bytes);
      drawn.problem.limits.host = Bytes(early.bytes);
      EXPECT_NE(frontier.findBest(budget), nullptr) << "seed " << seed << ", budget " << budget;
    }
  }
  EXPECT_GT(ended, 10);
}

// Whenever it is ended, whether or not others have an answer, and with and without a limit.
TEST(LimitedFrontier, AnEndedSearchLeavesLaterAnswersWhole) {
  int ended = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    DrawnStep drawn(seed);
    const int64_t peak = drawn.makeFrontier().keepAll().peak;
    for (const int64_t host : {kUnlimited, kUnit}) {
      drawn.problem.limits.host = Bytes(host);
      const auto answerAt = [](LimitedFrontier& frontier, int64_t budget) {
        const KnownPlan* best = frontier.findBest(budget);
        return best == nullptr ? std::pair<int64_t, int64_t>() : std::pair(best->time, best->peak);
      };
      for (int64_t budget = kUnit; budget <= peak; budget += kUnit) {
        LimitedFrontier whole = drawn.makeFrontier();
        const auto expected = answerAt(whole, budget);
        for (const int most : {0, 1, 2, 4}) {
          int asked = 0;
          SearchWatch watch([&] { return asked++ >= most; }, nullptr);
          watch.setAnswer(seed % 2 == 0);
          LimitedFrontier frontier = drawn.makeFrontier();
          frontier.setWatch(&watch);
          const KnownPlan* early = frontier.findBest(budget);
          EXPECT_TRUE(early == nullptr || early->time >= expected.first);
          frontier.setWatch(nullptr);
          EXPECT_EQ(answerAt(frontier, budget), expected)
              << "seed " << seed << ", budget " << budget << ", host " << host;
          EXPECT_EQ(frontier.findLowest().budget, whole.findLowest().budget);
          ended += watch.wasEnded() ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(ended, 50);
}

}  // namespace
}  // namespace stowage::planner
