// SPDX-License-Identifier: Apache-2.0
//
// A plan moves no more than its budget asks for: of the many schedules that hide their copies, the
// one that moves least. And what a step needs from outside does not make it wait for what the step
// before does in its end, or plans that move more would win by a hair.
#include <gtest/gtest.h>

#include <utility>

#include "planner/plan.h"
#include "tests/support/small_step.h"

namespace stowage::planner {
namespace {

using ir::Role;

struct Case {
  explicit Case(tests::SmallStep drawn)
      : step(std::move(drawn)),
        graph(tests::toGraph(step)),
        target(tests::smallTarget()),
        problem(tests::toProblem(step, graph, target)) {
    problem.allowed.recompute = false;
  }
  PlanResult planAt(int64_t units) const {
    return llvm::cantFail(planner::plan(problem, Bytes(units * tests::kUnitBytes)));
  }
  int64_t keepAllUnits() const {
    const Bytes most(INT64_MAX / 4);
    return llvm::cantFail(planner::plan(problem, most)).keepAllPeak.value() / tests::kUnitBytes;
  }

  tests::SmallStep step;
  ir::Graph graph;
  ir::Target target;
  Problem problem;
};

int64_t movedUnits(const PlanResult& result) {
  return (result.timetable.bytesOut + result.timetable.bytesIn).value() / tests::kUnitBytes;
}

constexpr int kLayers = 12;
constexpr int kUnits = 4;  // of an activation
constexpr int64_t kPeak = 1 + kLayers * kUnits;

/// Forward makes an activation per layer, backward reads them in reverse order, then an update that
/// needs much beside it. Item 0 is the weight that all read, item 1 the input.
tests::SmallStep makeNested() {
  tests::SmallStep step{.items = {{Role::kParameter, 1}, {Role::kInput, kUnits}}};
  for (int i = 0; i < kLayers; ++i) step.items.push_back({Role::kActivation, kUnits});
  for (int i = 0; i < kLayers; ++i) {
    step.nodes.push_back(
        {.op = "test.layer.default", .time = 40, .reads = {0, 1 + i}, .results = {2 + i}});
  }
  for (int i = kLayers; i-- > 0;) {
    step.nodes.push_back({.op = "test.grad.default", .time = 40, .reads = {0, 2 + i}});
  }
  step.nodes.push_back({.op = "aten.add_.Tensor",
                        .time = 40,
                        .temporary = 3 * kUnits,
                        .reads = {0},
                        .updates = {0}});
  return step;
}

TEST(ReduceTransfers, MovesWhatIsOverTheBudgetAndNothingElse) {
  const Case nested(makeNested());
  for (int64_t k = 1; k <= kLayers - 7; ++k) {
    const PlanResult result = nested.planAt(kPeak - k * kUnits);
    EXPECT_EQ(result.timetable.stepTime, result.timetable.computeTime) << k << " activations less";
    EXPECT_EQ(movedUnits(result) - kUnits, 2 * k * kUnits) << k << " activations less";
  }
}

// A small activation of long life and a large one, which must leave for a node that comes late.
// Something must leave for an earlier node too, but the large one is gone by then anyway.
TEST(ReduceTransfers, WhatTurnsOutNotToBeNeededStays) {
  const Case pair({.items = {{Role::kParameter, 1}, {Role::kActivation, 1}, {Role::kActivation, 8}},
                   .nodes = {{.op = "test.a.default", .time = 40, .reads = {0}, .results = {1}},
                             {.op = "test.a.default", .time = 40, .reads = {0}, .results = {2}},
                             {.op = "test.b.default", .time = 40, .reads = {0}},
                             {.op = "test.b.default", .time = 40, .temporary = 9, .reads = {0}},
                             {.op = "test.b.default", .time = 40, .temporary = 16, .reads = {0}},
                             {.op = "test.b.default", .time = 40, .reads = {0}},
                             {.op = "test.b.default", .time = 40, .reads = {2}},
                             {.op = "test.b.default", .time = 40, .reads = {1}},
                             {.op = "aten.add_.Tensor", .time = 1, .reads = {0}, .updates = {0}}}});
  ASSERT_EQ(pair.keepAllUnits(), 26);
  const PlanResult result = pair.planAt(18);
  EXPECT_EQ(result.timetable.stepTime, result.timetable.computeTime);
  EXPECT_EQ(movedUnits(result), 16);
}

TEST(ReduceTransfers, NothingWaitsForAnInputThatIsThereInTime) {
  const Case nested(makeNested());
  const PlanResult result = nested.planAt(nested.keepAllUnits());
  EXPECT_EQ(result.timetable.stepTime, result.timetable.computeTime);
  EXPECT_EQ(result.timetable.stalls.hostToDevice, Nanoseconds());
}

}  // namespace
}  // namespace stowage::planner
