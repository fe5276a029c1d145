// SPDX-License-Identifier: Apache-2.0
//
// The walk: which gaps are given up where the bytes exceed the target. Recomputes come first as
// long as the rule's price allows, then the offload that compute waits for least.
#include "planner/search/choose_actions.h"

#include <gtest/gtest.h>

#include "tests/support/or_fail.h"
#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using ir::GapAction;
using ir::Role;

constexpr int64_t kUnit = tests::kUnitBytes;

Choice choose(const Problem& problem, const ChoiceRule& rule) {
  const GapTable table(problem);
  FixedActions fixed = tests::orFail(fixActions(table));
  return tests::orFail(ActionChooser::make(table, std::move(fixed))).choose(rule);
}

// Node 2 needs 16 units with a, and a is open there. What is left at the fullest node is 8.
TEST(ChooseActions, TheWorkedStepGivesUpTheGapOverTheWideNode) {
  const tests::WorkedStep step;
  const Choice tight = choose(step.problem(), {.target = 8 * kUnit});
  EXPECT_EQ(tight.actions, (Actions{GapAction::kKeep, GapAction::kHost, GapAction::kKeep}));
  EXPECT_EQ(tight.bytes, 8 * kUnit);
  const Choice wide = choose(step.problem(), {.target = 16 * kUnit});
  EXPECT_EQ(wide.actions, Actions(3, GapAction::kKeep));
  EXPECT_EQ(wide.bytes, 16 * kUnit);
}

// The worked step, but `make` may be recomputed: 1 us for 8 units of 64 B, which is 1000 ns times
// 2^20 / 512 = 2'048'000 ns per MiB. Compute waits for no copy, so the price alone decides.
TEST(ChooseActions, ARecomputeUpToThePriceComesBeforeAnOffload) {
  tests::SmallStep small = tests::workedStepWith(8);
  small.nodes[0].op = "aten.mm.default";
  const tests::SmallProblem step(small);
  const auto actionAt = [&](int64_t price) {
    return choose(step.problem, {.target = 8 * kUnit, .recomputePrice = price}).actions[1];
  };
  EXPECT_EQ(actionAt(2'047'999), GapAction::kHost);
  EXPECT_EQ(actionAt(2'048'000), GapAction::kRecompute);
}

// The same step at price 0: 7 units of the host are too few for a, 8 are enough.
TEST(ChooseActions, WithoutRoomOnTheHostARecomputeIsLeft) {
  tests::SmallStep small = tests::workedStepWith(8);
  small.nodes[0].op = "aten.mm.default";
  const tests::SmallProblem step(small);
  const auto actionWith = [&](int64_t host) {
    return choose(step.problem, {.target = 8 * kUnit, .hostTarget = host}).actions[1];
  };
  EXPECT_EQ(actionWith(7 * kUnit), GapAction::kRecompute);
  EXPECT_EQ(actionWith(8 * kUnit), GapAction::kHost);
}

/// Activations of 4 units and of `units`, made by one node. `wide` needs 4 units beside them. The
/// first is read after `other`, the second one node later.
Choice chooseOneOfTwo(int units, int otherTime, int64_t target) {
  const tests::SmallProblem step({.items = {{Role::kActivation, 4}, {Role::kActivation, units}},
                                  .nodes = {{.op = "test.make.default", .results = {0, 1}},
                                            {.op = "test.read.default", .time = 9, .reads = {0, 1}},
                                            {.op = "test.wide.default", .temporary = 4},
                                            {.op = "test.other.default", .time = otherTime},
                                            {.op = "test.read.default", .reads = {0}},
                                            {.op = "test.read.default", .reads = {1}}}});
  return choose(step.problem, {.target = target});
}
constexpr size_t kFirst = 1;   // gap [1,4)
constexpr size_t kSecond = 4;  // gap [1,5)

// 4 of 12 units must go. Copies of 4 us are hidden by the 9 us before `wide` and after it.
TEST(ChooseActions, OfHiddenOffloadsTheFurthestNextUseGoes) {
  const Choice choice = chooseOneOfTwo(/*units=*/4, /*otherTime=*/9, 8 * kUnit);
  EXPECT_EQ(choice.actions[kFirst], GapAction::kKeep);
  EXPECT_EQ(choice.actions[kSecond], GapAction::kHost);
}

// 4 of 20 units must go. The copies of the second take 12 us each, longer than what is there.
TEST(ChooseActions, AnOffloadThatIsHiddenGoesBeforeOneThatComputeWaitsFor) {
  const Choice choice = chooseOneOfTwo(/*units=*/12, /*otherTime=*/9, 16 * kUnit);
  EXPECT_EQ(choice.actions[kFirst], GapAction::kHost);
  EXPECT_EQ(choice.actions[kSecond], GapAction::kKeep);
  EXPECT_EQ(choice.bytes, 16 * kUnit);
}

}  // namespace
}  // namespace stowage::planner
