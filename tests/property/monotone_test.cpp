// SPDX-License-Identifier: Apache-2.0
//
// More budget never hurts, for any budgets: the planned time never rises with the budget, the
// peak never exceeds it, and the bytes of the plan for a budget depend on nothing else: not on
// what was asked before, nor in which order, nor on what other threads do.
#include <gtest/gtest.h>
#include <llvm/Support/raw_ostream.h>
#include <sched.h>

#include <algorithm>
#include <random>
#include <thread>

#include "planner/files/plan_json.h"
#include "planner/plan.h"
#include "planner/search/in_parallel.h"
#include "tests/support/random_step.h"

namespace stowage::planner {
namespace {

constexpr int kBudgets = 200;
constexpr size_t kCold = 50;  // every 50th budget is also planned from nothing

class Monotone : public testing::TestWithParam<int> {
 protected:
  Monotone()
      : seed_(static_cast<uint64_t>(GetParam())),
        graph_(tests::makeRandomStep({.seed = seed_, .layers = 1 + GetParam() % 5})),
        target_(tests::makeSmallTarget(seed_)),
        problem_(llvm::cantFail(
            makeProblem(graph_, target_, tests::makeRandomCosts(graph_, seed_, 300)))) {}

  // From well below what works to more than everything needs, any byte, in random order.
  std::vector<int64_t> drawBudgets() const {
    const int64_t most = keepAll() + keepAll() / 8;
    std::mt19937_64 random(seed_);
    std::vector<int64_t> budgets;
    for (int i = 0; i < kBudgets; ++i) {
      budgets.push_back(most / 8 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)));
    }
    return budgets;
  }
  int64_t keepAll() const {
    return llvm::cantFail(plan(problem_, Bytes(INT64_MAX / 4))).keepAllPeak.value();
  }

  // The plan file, or the infeasible error.
  std::string textOf(ir::Expected<PlanResult> result, int64_t budget) const {
    if (!result) return ir::describe(result.takeError());
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::cantFail(
        writePlan(makePlanFile(graph_, target_,
                               tests::toSchedule(graph_, target_, result->timetable, Bytes(budget)),
                               Bytes(budget)),
                  os));
    return os.str();
  }
  std::vector<std::string> planAll(const std::vector<int64_t>& budgets) const {
    Planner planner = llvm::cantFail(Planner::make(problem_));
    std::vector<std::string> texts;
    for (const int64_t budget : budgets) {
      texts.push_back(textOf(planner.plan(Bytes(budget)), budget));
    }
    return texts;
  }

  uint64_t seed_;
  ir::Graph graph_;
  ir::Target target_;
  Problem problem_;
};

TEST_P(Monotone, TimeNeverRisesWithTheBudget) {
  std::vector<int64_t> budgets = drawBudgets();
  std::sort(budgets.begin(), budgets.end());
  Planner planner = llvm::cantFail(Planner::make(problem_));
  int64_t last = INT64_MAX;
  int planned = 0;
  for (const int64_t budget : budgets) {
    ir::Expected<PlanResult> result = planner.plan(Bytes(budget));
    if (!result) {
      EXPECT_EQ(planned, 0) << "infeasible at " << budget << " after a smaller budget was planned";
      llvm::consumeError(result.takeError());
      continue;
    }
    ++planned;
    EXPECT_LE(result->timetable.devicePeak.value(), budget);
    EXPECT_LE(result->timetable.stepTime.value(), last) << "at " << budget;
    last = result->timetable.stepTime.value();
  }
  EXPECT_GT(planned, kBudgets / 4);
}

TEST_P(Monotone, ABudgetHasOnePlan) {
  const std::vector<int64_t> budgets = drawBudgets();
  const std::vector<std::string> texts = planAll(budgets);
  std::vector<int64_t> falling = budgets;
  std::sort(falling.begin(), falling.end(), std::greater<>());
  std::vector<std::string> first;
  std::vector<std::string> second;
  std::thread other([&] { second = planAll(falling); });
  first = planAll(falling);
  other.join();
  EXPECT_EQ(first, second);
  for (size_t i = 0; i < budgets.size(); ++i) {
    const auto at = std::find(falling.begin(), falling.end(), budgets[i]) - falling.begin();
    EXPECT_EQ(texts[i], first[static_cast<size_t>(at)]) << "at " << budgets[i];
    if (i % kCold != 0) continue;
    EXPECT_EQ(texts[i], textOf(plan(problem_, Bytes(budgets[i])), budgets[i]));
  }
}

// On a thread that may use one core, searches come one after the other.
TEST_P(Monotone, OneCoreFindsWhatManyDo) {
  if (coreCount() < 2) GTEST_SKIP() << "this process has one core";
  std::vector<int64_t> budgets = drawBudgets();
  budgets.resize(kBudgets / 10);
  std::vector<std::string> alone;
  size_t cores = 0;
  std::thread pinned([&] {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(sched_getcpu(), &first);
    sched_setaffinity(0, sizeof(first), &first);
    cores = coreCount();
    alone = planAll(budgets);
  });
  pinned.join();
  EXPECT_EQ(cores, 1U);
  EXPECT_EQ(alone, planAll(budgets));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Monotone, testing::Values(1, 7, 13));

}  // namespace
}  // namespace stowage::planner
