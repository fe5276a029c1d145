// SPDX-License-Identifier: Apache-2.0
//
// Bytes over one step, without a plan and with one. An activation of 8 units is written first and
// read last; a node between them needs 8 units of temporaries; weights take 2 units.
#include "planner/report/memory_history.h"

#include <gtest/gtest.h>

#include "ir/costs/unplanned_peak.h"
#include "planner/plan.h"
#include "tests/support/random_step.h"
#include "tests/support/small_step.h"

namespace stowage::planner {
namespace {

using ir::Role;

constexpr auto kWeights = static_cast<size_t>(MemoryGroup::kParameters);
constexpr auto kActivations = static_cast<size_t>(MemoryGroup::kActivations);
constexpr auto kTemporaries = static_cast<size_t>(MemoryGroup::kTemporaries);

class MemoryOverTheStep : public testing::Test {
 protected:
  MemoryOverTheStep() {
    step_ = {.items = {{Role::kActivation, 8}, {Role::kFrozen, 2}},
             .nodes = {{.op = "test.make.default", .time = 3, .results = {0}},
                       {.op = "test.wide.default", .time = 2, .temporary = 8},
                       {.op = "test.read.default", .time = 1, .reads = {0, 1}}}};
    graph_ = tests::toGraph(step_);
    target_ = tests::smallTarget();
  }
  static std::vector<int64_t> unitsOf(const MemoryHistory& history, size_t group) {
    std::vector<int64_t> units;
    for (const MemoryPoint& point : history.points) {
      units.push_back(point.bytes[group] / tests::kUnitBytes);
    }
    return units;
  }

  tests::SmallStep step_;
  ir::Graph graph_;
  ir::Target target_;
};

using Units = std::vector<int64_t>;

TEST_F(MemoryOverTheStep, WithoutAPlanKeepsEverythingFromFirstToLastAccess) {
  const Problem problem = tests::toProblem(step_, graph_, target_);
  const MemoryHistory history = findUnplannedMemory(graph_, target_, problem.costs);
  EXPECT_EQ(unitsOf(history, kActivations), (Units{8, 8, 8}));
  EXPECT_EQ(unitsOf(history, kWeights), (Units{2, 2, 2}));
  EXPECT_EQ(unitsOf(history, kTemporaries), (Units{0, 8, 0}));
  EXPECT_EQ(history.stepTime, Nanoseconds(6 * tests::kUnitTime));
  EXPECT_EQ(history.points[1].start, Nanoseconds(3 * tests::kUnitTime));
  EXPECT_EQ(history.peak(), ir::computeUnplannedPeak(graph_, target_, problem.costs));
}

// The activation is on the host while the wide node runs: never more than 10 units at once.
TEST_F(MemoryOverTheStep, WithAPlanFallsWhereStoragesAreOffloaded) {
  const Problem problem = tests::toProblem(step_, graph_, target_);
  const Bytes budget(10 * tests::kUnitBytes);
  ir::Expected<PlanResult> result = planner::plan(problem, budget);
  ASSERT_TRUE(static_cast<bool>(result)) << ir::describe(result.takeError());
  const ir::Schedule schedule = tests::toSchedule(graph_, target_, result->timetable, budget);
  const MemoryHistory history = findPlannedMemory({.graph = graph_,
                                                   .schedule = schedule,
                                                   .costs = problem.costs,
                                                   .alignBytes = target_.alignBytes});
  EXPECT_EQ(unitsOf(history, kActivations), (Units{8, 0, 8}));
  EXPECT_EQ(unitsOf(history, kWeights), (Units{2, 2, 2}));
  EXPECT_EQ(unitsOf(history, kTemporaries), (Units{0, 8, 0}));
  EXPECT_EQ(history.peak(), budget);
  EXPECT_EQ(history.stepTime, result->timetable.stepTime);
}

}  // namespace
}  // namespace stowage::planner
