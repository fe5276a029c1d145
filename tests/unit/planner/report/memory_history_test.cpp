// SPDX-License-Identifier: Apache-2.0
//
// Bytes over one step, without a plan and with one. An activation of 8 units is written first and
// read last; a node between them needs 8 units of temporaries; weights take 2 units.
#include "planner/report/memory_history.h"

#include <gtest/gtest.h>

#include <algorithm>

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

/// Whether command `at` changes or reads `residency`, and whether it reads it.
struct Touch {
  bool any = false;
  bool reads = false;
};
Touch touchOf(const ir::Command& command, ir::ResidencyId residency) {
  const auto has = [&](const auto& list) {
    return std::find(list.begin(), list.end(), residency) != list.end();
  };
  if (command.kind == ir::CommandKind::kCopy) {
    return {.any = command.from == residency || command.to == residency,
            .reads = command.from == residency};
  }
  return {.any = has(command.in) || has(command.out), .reads = has(command.in)};
}

/// The slow way: a residency is there at its accesses, and where its next access reads it. After
/// the last one it is there if it is valid at the step boundary or the step's first access reads
/// it.
bool isThere(const ir::Schedule& schedule, ir::ResidencyId residency, size_t at) {
  const std::vector<ir::Command>& commands = schedule.commands;
  if (touchOf(commands[at], residency).any) return true;
  for (size_t i = at + 1; i < commands.size(); ++i) {
    const Touch touch = touchOf(commands[i], residency);
    if (touch.any) return touch.reads;
  }
  for (size_t i = 0; i < at; ++i) {
    const Touch touch = touchOf(commands[i], residency);
    if (!touch.any) continue;
    if (touch.reads) return true;
    return std::any_of(schedule.boundary.begin(), schedule.boundary.end(), [&](const auto& entry) {
      return std::find(entry.at.begin(), entry.at.end(), residency) != entry.at.end();
    });
  }
  return false;
}

int64_t bytesAt(const ir::Graph& graph, const ir::Schedule& schedule, size_t at) {
  int64_t sum = schedule.commands[at].temp.bytes.value();
  for (size_t r = 0; r < schedule.residencies.size(); ++r) {
    const ir::Residency& residency = schedule.residencies[r];
    const bool isTaken = schedule.commands[at].takes == ir::ResidencyId(r);
    if (residency.space != ir::Space::kDevice || isTaken) continue;
    if (!isThere(schedule, ir::ResidencyId(r), at)) continue;
    sum += roundUp(graph.storage(residency.storage).bytes, tests::kUnitBytes).value();
  }
  return sum;
}

// Random steps, each at its smallest budget and at some above. The sum over groups is what a slow
// count finds, and never more than the addresses say. Where addresses leave no hole it is as much.
TEST(MemoryHistory, OfRandomPlansCountsWhatIsThere) {
  int tight = 0;
  int plans = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const tests::SmallStep step = tests::drawSmallStep(seed);
    const ir::Graph graph = tests::toGraph(step);
    const ir::Target target = tests::smallTarget();
    const Problem problem = tests::toProblem(step, graph, target);
    const Bytes keepAll = ir::computeUnplannedPeak(graph, target, problem.costs);
    for (const int64_t percent : {40, 60, 80, 100}) {
      const Bytes budget(keepAll.value() * percent / 100 / tests::kUnitBytes * tests::kUnitBytes);
      ir::Expected<PlanResult> result = planner::plan(problem, budget);
      if (!result) {
        llvm::consumeError(result.takeError());
        continue;
      }
      const ir::Schedule schedule = tests::toSchedule(graph, target, result->timetable, budget);
      const MemoryHistory history = findPlannedMemory({.graph = graph,
                                                       .schedule = schedule,
                                                       .costs = problem.costs,
                                                       .alignBytes = target.alignBytes});
      size_t launch = 0;
      for (size_t i = 0; i < schedule.commands.size(); ++i) {
        if (schedule.commands[i].stream != ir::Stream::kCompute) continue;
        EXPECT_EQ(sumOf(history.points[launch].bytes), bytesAt(graph, schedule, i))
            << "seed " << seed << ", " << percent << " %, command " << i;
        ++launch;
      }
      EXPECT_EQ(launch, history.points.size());
      EXPECT_LE(history.peak(), result->timetable.devicePeak) << seed << ' ' << percent;
      EXPECT_LE(history.peak(), budget) << seed << ' ' << percent;
      tight += history.peak() == result->timetable.devicePeak ? 1 : 0;
      ++plans;
    }
  }
  EXPECT_GT(plans, 40);
  EXPECT_GT(tight, plans / 2) << "of " << plans;
}

}  // namespace
}  // namespace stowage::planner
