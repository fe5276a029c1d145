// SPDX-License-Identifier: Apache-2.0
//
// Choices by flow: possible on random steps, and below their target where they say so.
#include "planner/search/flow_choice.h"

#include <gtest/gtest.h>

#include "planner/search/known_plan.h"
#include "tests/support/or_fail.h"
#include "tests/support/random_step.h"
#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

FlowChooser makeChooser(const GapTable& table) {
  FixedActions fixed = tests::orFail(fixActions(table));
  std::vector<int64_t> loads = computeNodeLoads(table, fixed.actions);
  return {table, std::move(fixed), std::move(loads)};
}

TEST(FlowChoice, TheWorkedStepIsEstimatedAndChosen) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const FlowChooser chooser = makeChooser(table);
  const Choice choice = chooser.choose({.target = tests::units(8), .cuts = 4}, INT64_MAX);
  EXPECT_EQ(choice.actions[1], ir::GapAction::kHost);
  EXPECT_EQ(choice.bytes, tests::units(8));
  EXPECT_LE(chooser.estimate(tests::units(8)), tests::us(21));
  EXPECT_TRUE(chooser.choose({.target = tests::units(8), .cuts = 4}, tests::us(21)).actions.empty())
      << "as slow as what is known";
}

TEST(FlowChoice, ChoicesForRandomStepsArePossible) {
  int chosen = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const ir::Graph graph = tests::makeRandomStep({.seed = seed, .layers = 6});
    const ir::Target target = tests::makeSmallTarget(seed);
    const Problem problem = tests::orFail(
        makeProblem(graph, target, tests::makeRandomCosts(graph, seed, 1 + int64_t(seed % 7) * 9)));
    const GapTable table(problem);
    const FlowChooser chooser = makeChooser(table);
    const Tried all =
        tryActions(table, Actions(table.gaps().size(), ir::GapAction::kKeep), INT64_MAX / 4, {});
    ASSERT_TRUE(all.plan);
    for (const int64_t percent : {90, 70, 50}) {
      const int64_t target = all.plan->peak * percent / 100;
      const Choice choice = chooser.choose({.target = target, .cuts = 8}, INT64_MAX);
      if (choice.actions.empty()) continue;
      const Tried tried = tryActions(table, choice.actions, target, {});
      EXPECT_TRUE(tried.plan) << "seed " << seed;
      chosen += tried.plan && choice.bytes <= target ? 1 : 0;
    }
  }
  EXPECT_GT(chosen, 15);
}

}  // namespace
}  // namespace stowage::planner
