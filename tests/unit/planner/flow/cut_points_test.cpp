// SPDX-License-Identifier: Apache-2.0
//
// Cut points of a chain of layers: what each layer leaves for its backward may be recomputed from
// what the layer before left, so that all could hang on the first.
#include "planner/flow/cut_points.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

constexpr int kLayers = 8;

// x1 = f(x0), x2 = f(x1), ...; backward reads them from the last to the first.
tests::SmallStep makeChain() {
  tests::SmallStep step;
  step.items.push_back({.role = ir::Role::kParameter});
  for (int i = 1; i <= kLayers; ++i) {
    step.items.push_back({.units = 4});
    step.nodes.push_back({.op = "aten.mm.default", .reads = {i - 1}, .results = {i}});
  }
  for (int i = kLayers; i >= 1; --i) step.nodes.push_back({.op = "test.read", .reads = {i}});
  return step;
}

int countRecomputable(const GapTable& table, int32_t cuts) {
  const RecomputeCosts costs = findRecomputeCosts(table);
  int count = 0;
  for (const bool may : chooseRecomputable(table, costs, cuts)) count += may ? 1 : 0;
  return count;
}

// x1 is read again while forward runs: there it stays, though a recompute would be possible.
TEST(CutPoints, SegmentsDropWhatForwardLeavesForBackward) {
  tests::SmallStep small = makeChain();
  small.nodes[3].reads.push_back(1);
  for (size_t i = kLayers; i < small.nodes.size(); ++i) {
    small.nodes[i].phase = ir::Phase::kBackward;
  }
  const tests::SmallProblem step(small);
  const RecomputeCosts costs = findRecomputeCosts(step.table);
  const std::vector<bool> dropped = chooseSegments(step.table, 1);
  bool staysInForward = false;
  int count = 0;
  for (size_t g = 0; g < dropped.size(); ++g) {
    const bool endsInForward = step.table.gaps()[g].end < kLayers;
    if (costs[g] && endsInForward) staysInForward = true;
    EXPECT_FALSE(dropped[g] && endsInForward) << g;
    count += dropped[g] ? 1 : 0;
  }
  EXPECT_TRUE(staysInForward);
  EXPECT_GT(count, kLayers / 2);
}

TEST(CutPoints, MoreOfThemLeaveLessToRecompute) {
  const tests::SmallProblem step(makeChain());
  const int few = countRecomputable(step.table, 1);
  const int some = countRecomputable(step.table, 3);
  const int many = countRecomputable(step.table, 100);
  EXPECT_GT(few, some);
  EXPECT_GE(some, many);
  EXPECT_GE(many, 1);
}

}  // namespace
}  // namespace stowage::planner
