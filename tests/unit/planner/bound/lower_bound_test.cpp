// SPDX-License-Identifier: Apache-2.0
//
// Four steps to work out by hand: one for each thing that the bound must not charge. In each the
// best of all schedules reaches the bound, and the formula as it was first written down lies above
// it. Times and bytes in units (tests/support/small_step.h).
#include "planner/bound/lower_bound.h"

#include <gtest/gtest.h>

#include "tests/support/exhaustive_search.h"
#include "tests/support/reference_bound.h"

namespace stowage::planner {
namespace {

using ir::Role;

struct Bounds {
  double now = 0;
  double first = 0;  // as first written down
};

Bounds boundsOf(const tests::SmallStep& step, int budgetUnits) {
  const ir::Graph graph = tests::toGraph(step);
  const ir::Target target = tests::smallTarget();
  const Problem problem = tests::toProblem(step, graph, target);
  const Bytes budget(budgetUnits * tests::kUnitBytes);
  const int64_t bound = computeLowerBound(problem, budget).stepTime.value();
  const double first =
      tests::referenceBound(problem, budget.value(), tests::Formula::kAsFirstWritten);
  const auto unit = static_cast<double>(tests::kUnitTime);
  return {static_cast<double>(bound) / unit, first / unit};
}

void expectBest(const tests::SmallStep& step, int budgetUnits, int best) {
  const int64_t time = best * tests::kUnitTime;
  EXPECT_EQ(tests::searchAllSchedules(step, budgetUnits, time), tests::Verdict::kNotFaster);
  EXPECT_EQ(tests::searchAllSchedules(step, budgetUnits, time + tests::kUnitTime / 2),
            tests::Verdict::kFaster);
}

// 8 units written at 1 and read until 11 leave while they are read: they need not be waited for.
TEST(LowerBound, BytesLeaveFromTheLastWriteOn) {
  const tests::SmallStep step = {.items = {{Role::kActivation, 8}},
                                 .nodes = {{.op = "test.make.default", .time = 1, .results = {0}},
                                           {.op = "test.read.default", .time = 10, .reads = {0}},
                                           {.op = "test.wide.default", .time = 1, .temporary = 8},
                                           {.op = "test.other.default", .time = 8},
                                           {.op = "test.read.default", .time = 1, .reads = {0}}}};
  const Bounds bounds = boundsOf(step, 8);
  EXPECT_NEAR(bounds.now, 21, 0.01);
  EXPECT_NEAR(bounds.first, 11 + 8 + 10, 0.01);
  expectBest(step, 8, 21);
}

// A weight that no step writes is dropped, not offloaded.
TEST(LowerBound, WhatTheHostHoldsNeedNotLeave) {
  const tests::SmallStep step = {.items = {{Role::kFrozen, 8}},
                                 .nodes = {{.op = "test.read.default", .time = 1, .reads = {0}},
                                           {.op = "test.wide.default", .time = 1, .temporary = 8},
                                           {.op = "test.other.default", .time = 8}}};
  const Bounds bounds = boundsOf(step, 8);
  EXPECT_NEAR(bounds.now, 10, 0.01);
  EXPECT_NEAR(bounds.first, 1 + 8 + 9, 0.01);
  expectBest(step, 8, 10);
}

// One recompute makes both results of its node.
TEST(LowerBound, ARecomputeIsPaidOnceForAllItsResults) {
  const tests::SmallStep step = {
      .items = {{Role::kActivation, 4}, {Role::kActivation, 4}},
      .nodes = {{.op = "aten.native_layer_norm.default", .time = 4, .results = {0, 1}},
                {.op = "test.wide.default", .time = 1, .temporary = 8},
                {.op = "test.read.default", .time = 1, .reads = {0, 1}}},
      .outPerUnit = 4,
      .inPerUnit = 4};
  const Bounds bounds = boundsOf(step, 8);
  EXPECT_NEAR(bounds.now, 10, 0.01);
  EXPECT_NEAR(bounds.first, 14, 0.01);
  expectBest(step, 8, 10);
}

// A result that lands on its dying operand needs no bytes of its own.
TEST(LowerBound, AnInPlaceReuseNeedsTheBytesOnce) {
  const tests::SmallStep step = {
      .items = {{Role::kActivation, 4}, {Role::kActivation, 4}, {Role::kFrozen, 4}},
      .nodes = {{.op = "test.make.default", .time = 1, .reads = {2}, .results = {0}},
                {.op = "aten.relu.default", .time = 1, .reads = {0}, .results = {1}},
                {.op = "test.read.default", .time = 1, .reads = {1, 2}}},
      .outPerUnit = 4,
      .inPerUnit = 4};
  const Bounds bounds = boundsOf(step, 8);
  EXPECT_NEAR(bounds.now, 3, 0.01);
  EXPECT_GT(bounds.first, 15);
  expectBest(step, 8, 3);
}

}  // namespace
}  // namespace stowage::planner
