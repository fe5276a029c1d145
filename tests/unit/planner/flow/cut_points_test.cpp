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
