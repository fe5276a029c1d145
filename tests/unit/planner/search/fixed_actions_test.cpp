// SPDX-License-Identifier: Apache-2.0
//
// Pins and pinned rows as fixed actions: which gaps they reach, which of them wins, and what is
// refused.
#include "planner/search/fixed_actions.h"

#include <gtest/gtest.h>

#include "tests/support/or_fail.h"
#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using enum ir::GapAction;

FixedActions fix(const Problem& problem) { return tests::orFail(fixActions(GapTable(problem))); }

std::string refusal(const Problem& problem) {
  ir::Expected<FixedActions> fixed = fixActions(GapTable(problem));
  return fixed ? "" : ir::takePayload(fixed.takeError()).text();
}

// a has the gaps [0,1), [1,4) and [4,5). An offload is possible in the second alone, so a pin fixes
// that one. A pin that keeps is possible everywhere.
TEST(FixedActions, APinFixesTheGapsInWhichItIsPossible) {
  const tests::WorkedStep step;
  Problem problem = step.problem();
  EXPECT_EQ(fix(problem).isFixed, std::vector<bool>(3, false));
  problem.pins = {{.pattern = "s*", .action = kHost}};
  EXPECT_EQ(fix(problem).actions, (Actions{kKeep, kHost, kKeep}));
  EXPECT_EQ(fix(problem).isFixed, (std::vector<bool>{false, true, false}));
  problem.pins = {{.pattern = "s0", .action = kKeep}};
  EXPECT_EQ(fix(problem).actions, Actions(3, kKeep));
  EXPECT_EQ(fix(problem).isFixed, std::vector<bool>(3, true));
}

TEST(FixedActions, ALaterPinAndAPinnedRowWin) {
  const tests::WorkedStep step;
  Problem problem = step.problem();
  problem.pins = {{.pattern = "*", .action = kHost}, {.pattern = "s0", .action = kKeep}};
  EXPECT_EQ(fix(problem).actions[1], kKeep);
  problem.pinnedRows = {{step.a(), 1, 4, kHost, /*pinned=*/true, "pinned"}};
  EXPECT_EQ(fix(problem).actions[1], kHost);
}

TEST(FixedActions, APinThatIsPossibleNowhereAndARowWithoutAGapAreRefused) {
  const tests::WorkedStep step;
  Problem problem = step.problem();
  problem.pins = {{.pattern = "s0", .action = kRecompute}};
  EXPECT_EQ(refusal(problem), "pin 's0=recompute': found no gap in which that is possible");
  problem.pins.clear();
  problem.pinnedRows = {{step.a(), 1, 3, kHost, /*pinned=*/true, "pinned"}};
  EXPECT_EQ(refusal(problem),
            "storage 's0': found a decision for [1, 3), which is none of its gaps");
}

// Node 2 is in backward, so what the first two nodes made is recomputed there, unless a pin says
// otherwise. All else is kept.
TEST(FixedActions, SegmentsFixEveryGapAndAPinWins) {
  tests::SmallStep small = tests::hostOrTimeStep();
  for (size_t i = 2; i < small.nodes.size(); ++i) small.nodes[i].phase = ir::Phase::kBackward;
  const tests::SmallProblem step(small, {.segments = 1});
  Problem problem = step.problem;
  const FixedActions all = fix(problem);
  EXPECT_EQ(all.actions, (Actions{kRecompute, kKeep, kRecompute, kKeep}));
  EXPECT_EQ(all.isFixed, std::vector<bool>(4, true));
  EXPECT_EQ(all.isPinned, std::vector<bool>(4, false));
  problem.pins = {{.pattern = "s1", .action = kKeep}};
  const FixedActions pinned = fix(problem);
  EXPECT_EQ(pinned.actions, (Actions{kRecompute, kKeep, kKeep, kKeep}));
  EXPECT_EQ(pinned.isPinned, (std::vector<bool>{false, false, true, true}));
}

// No node uses the weight, so it is on the host in any case and has no gap to fix.
TEST(FixedActions, WhatIsAlwaysOnTheHostMayBePinnedThere) {
  const tests::SmallProblem step(
      {.items = {{ir::Role::kFrozen, 2}}, .nodes = {{.op = "test.other.default"}}});
  Problem problem = step.problem;
  problem.pins = {{.pattern = "s0", .action = kHost}};
  EXPECT_TRUE(fix(problem).isFixed.empty());
  problem.allowed.offload = false;
  EXPECT_NE(refusal(problem), "");
}

}  // namespace
}  // namespace stowage::planner
