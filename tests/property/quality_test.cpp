// SPDX-License-Identifier: Apache-2.0
//
// Plans are close to their bound: on steps of which the best time is known, exactly there; on
// random ones, on average: with sizes all alike, where addresses cost nothing and what is seen is
// the choice of what leaves and when, and with many sizes.
#include <gtest/gtest.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <algorithm>
#include <random>

#include "planner/plan.h"
#include "planner/search/choose_actions.h"
#include "planner/search/known_plan.h"
#include "planner/targets/roofline.h"
#include "tests/support/random_step.h"
#include "tests/support/small_step.h"
#include "tools/bench/llama_step.h"

namespace stowage::planner {
namespace {

using ir::Role;

constexpr int kLayers = 10;
constexpr int kLarge = 4;

/// A weight and an activation per layer, both read again in reverse order by backward; weights are
/// updated after their layer's backward, long before they are needed again. The link can carry half
/// of the activations to the host while forward runs, so the other half of what must leave has to
/// be weights, although activations of earlier layers are not used for longer.
tests::SmallStep makeLayers() {
  tests::SmallStep step;
  for (int i = 0; i < kLayers; ++i) step.items.push_back({Role::kParameter, kLarge});
  for (int i = 0; i < kLayers; ++i) step.items.push_back({Role::kActivation, kLarge});
  for (int i = 0; i < kLayers; ++i) {
    step.nodes.push_back(
        {.op = "test.layer.default", .time = 2 * kLarge, .reads = {i}, .results = {kLayers + i}});
  }
  for (int i = kLayers; i-- > 0;) {
    step.nodes.push_back(
        {.op = "test.grad.default", .time = 4 * kLarge, .reads = {i, kLayers + i}});
    step.nodes.push_back({.op = "aten.add_.Tensor", .time = kLarge, .reads = {i}, .updates = {i}});
  }
  step.outPerUnit = 4;
  step.inPerUnit = 1;
  return step;
}

double gapOf(const PlanResult& result) {
  return static_cast<double>(result.timetable.stepTime.value()) /
         static_cast<double>(result.bound.value());
}

TEST(Quality, WhatTheLinkHasTimeForLeaves) {
  const tests::SmallStep step = makeLayers();
  const ir::Graph graph = tests::toGraph(step);
  const ir::Target target = tests::smallTarget();
  Problem problem = tests::toProblem(step, graph, target);
  problem.allowed.recompute = false;
  const PlanResult all = llvm::cantFail(plan(problem, Bytes(INT64_MAX / 4)));
  for (int64_t k = 1; k < kLayers; ++k) {
    const Bytes less(k * kLarge * tests::kUnitBytes);
    const PlanResult result = llvm::cantFail(plan(problem, all.keepAllPeak - less));
    EXPECT_EQ(result.timetable.stepTime, result.timetable.computeTime) << k << " storages less";
  }
}

double meanGap(bool alike) {
  double sum = 0;
  int count = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const ir::Graph graph = tests::makeRandomStep({.seed = seed, .layers = 24, .alike = alike});
    const ir::Target target = tests::makeSmallTarget(seed);
    const Problem problem = llvm::cantFail(
        makeProblem(graph, target, tests::makeRandomCosts(graph, seed, 600), {.recompute = false}));
    const Bytes all = llvm::cantFail(plan(problem, Bytes(INT64_MAX / 4))).keepAllPeak;
    for (const int64_t percent : {85, 70}) {
      ir::Expected<PlanResult> result = plan(problem, Bytes(all.value() * percent / 100));
      if (!result) {
        llvm::consumeError(result.takeError());
        continue;
      }
      sum += gapOf(*result) - 1;
      ++count;
    }
  }
  EXPECT_GT(count, 15);
  return sum / count;
}

TEST(Quality, RandomStepsAreCloseToTheirBoundOnAverage) { EXPECT_LT(meanGap(true), 0.042); }

// Addresses cost something here, less if prefetches wait for a place that is free soon.
TEST(Quality, StepsOfManySizesAreCloseToTheirBoundOnAverage) { EXPECT_LT(meanGap(false), 0.05); }

// In a residual stream what one recompute reads must be there for all, which is easily too much:
// what is chosen keeps to its target all the same, at any price of recomputes.
TEST(Quality, RecomputesDoNotBringBackMoreThanTheyFree) {
  const ir::Graph graph = tools::makeLlamaStep(
      {.layers = 24, .hidden = 1024, .wide = 4096, .heads = 8, .vocabulary = 4096, .tokens = 1024});
  const ir::Target target = llvm::cantFail(findTargetProfile("h200"));
  const Problem problem = llvm::cantFail(makeProblem(graph, target, rooflineCosts(graph, target)));
  const GapTable table(problem);
  const FixedActions fixed = llvm::cantFail(fixActions(table));
  const std::vector<int64_t> loads = computeNodeLoads(table, fixed.actions);
  const int64_t all = *std::max_element(loads.begin(), loads.end());
  const ActionChooser chooser = llvm::cantFail(ActionChooser::make(table, fixed));
  for (const int64_t percent : {15, 25, 40}) {
    for (const int64_t price : {-1, 0, 10'000, 100'000}) {
      const int64_t most = all * percent / 100;
      EXPECT_LE(chooser.choose({.target = most, .recomputePrice = price}).bytes, most)
          << percent << " % at price " << price;
    }
  }
}

/// The smallest budget that a refusal names, where each kind of call takes so long.
Bytes smallestBudget(const ir::Graph& graph, llvm::function_ref<int64_t()> nanoseconds) {
  const ir::Target target = llvm::cantFail(findTargetProfile("cpu"));
  ir::CostTable costs = rooflineCosts(graph, target);
  for (auto& [signature, cost] : costs.bySignature) cost.work = Nanoseconds(nanoseconds());
  const Problem problem = llvm::cantFail(makeProblem(graph, target, costs));
  ir::Expected<PlanResult> none = plan(problem, Bytes(1));
  return ir::takePayload(none.takeError()).infeasible()->smallestBudget;
}

// What fits is a matter of bytes. On a busy machine some ops are measured a thousand times too
// long.
TEST(Quality, AFewLongOpsDoNotChangeWhatFits) {
  const ir::Graph graph = tools::makeLlamaStep(
      {.layers = 1, .hidden = 32, .wide = 128, .heads = 2, .vocabulary = 256, .tokens = 64});
  const Bytes even = smallestBudget(graph, [] { return 2000; });
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const Bytes skewed = smallestBudget(graph, [&]() -> int64_t {
      const bool isLong = random() % 100 < 8;
      return isLong ? 7'000'000 : 500 + static_cast<int64_t>(random() % 4000);
    });
    EXPECT_LE(skewed.value(), even.value() * 11 / 10) << "seed " << seed;
  }
}

}  // namespace
}  // namespace stowage::planner
