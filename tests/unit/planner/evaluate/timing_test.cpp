// SPDX-License-Identifier: Apache-2.0
//
// What a schedule's steps take with launch overhead: by hand on a few commands, and against the
// launch waits of a graph's nodes alone, which are found in another way.
#include "planner/evaluate/timing.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "ir/costs/launch_waits.h"
#include "ir/text/parser.h"
#include "tests/support/or_fail.h"
#include "tests/support/random.h"

namespace stowage::planner {
namespace {

using ir::Stream;
using tests::orFail;

/// Commands of compute and of one link, none waiting for another unless told to.
struct Steps {
  std::vector<Stream> streams;
  std::vector<int64_t> durations;
  Dependencies dependencies;
  LaunchOverheads launchOverheads;

  void add(Stream stream, int64_t duration, int64_t launch) {
    streams.push_back(stream);
    durations.push_back(duration);
    launchOverheads.durations.push_back(launch);
    launchOverheads.firstUpdate = durations.size();
    dependencies.wait.emplace_back();
    dependencies.prev.emplace_back();
  }
  Timeline time() const {
    return simulateTiming({streams, durations, dependencies, {}, {}, launchOverheads});
  }
};

TEST(LaunchOverhead, CopiesAreEnqueuedInTurnAndDelayTheLaunchesBehindThem) {
  Steps steps;
  steps.add(Stream::kCompute, 3, 10);
  steps.add(Stream::kDeviceToHost, 2, 7);
  steps.add(Stream::kCompute, 3, 10);
  const Timeline timeline = steps.time();
  EXPECT_EQ(timeline.stepTime, Nanoseconds(27));
  EXPECT_EQ(timeline.start[2] - timeline.end[0], Nanoseconds(17 - 3));
  EXPECT_EQ(timeline.enqueued[2] - timeline.enqueued[0], Nanoseconds(17));
  steps.launchOverheads.durations[1] = 0;
  EXPECT_EQ(steps.time().stepTime, Nanoseconds(20));
}

TEST(LaunchOverhead, AThreadThatIsAheadHoldsNothingUp) {
  Steps steps;
  steps.add(Stream::kCompute, 30, 10);
  steps.add(Stream::kHostToDevice, 2, 7);
  steps.add(Stream::kCompute, 3, 10);
  EXPECT_EQ(steps.time().stepTime, Nanoseconds(33));
}

TEST(LaunchOverhead, ComputeThatWaitsForBytesGivesTheThreadTime) {
  Steps steps;
  steps.add(Stream::kCompute, 1, 10);
  steps.add(Stream::kHostToDevice, 50, 5);
  steps.add(Stream::kCompute, 1, 10);
  steps.dependencies.wait[2].emplace_back(size_t{1});
  EXPECT_EQ(steps.time().stepTime, Nanoseconds(50)) << "the link is busy all the time";
}

TEST(LaunchOverhead, AStepIsEnqueuedWhenTheOneBeforeTheLastIsDone) {
  Steps steps;
  steps.add(Stream::kCompute, 100, 1);
  const Timeline timeline = steps.time();
  EXPECT_EQ(timeline.stepTime, Nanoseconds(100));
  EXPECT_EQ(timeline.start[0] - timeline.enqueued[0], Nanoseconds(100 - 1));
}

TEST(LaunchOverhead, AGraphIsLaunchedInOneGoAndUpdatesWaitForScalars) {
  Steps steps;
  for (int i = 0; i < 4; ++i) steps.add(Stream::kCompute, 5, 50);
  steps.launchOverheads.firstUpdate = 3;
  steps.launchOverheads.firstOutsideGraph = 3;
  EXPECT_EQ(steps.time().stepTime, Nanoseconds(50));
  steps.launchOverheads.scalars = 30;
  EXPECT_EQ(steps.time().stepTime, Nanoseconds(30 + 50));
  steps.launchOverheads.firstOutsideGraph = 4;
  EXPECT_EQ(steps.time().stepTime, Nanoseconds(30));
}

ir::Graph makeChain(int64_t nodes, int64_t update) {
  std::string text = "graph @g version=1 device=\"cuda\" {\ninput %v0 : f32[64]\n";
  for (int64_t i = 0; i < nodes; ++i) {
    if (i == update) text += "optimizer \"\":\n";
    text += "%v" + std::to_string(i + 1) + " : f32[64] = aten.neg.default(%v" + std::to_string(i) +
            ")\n";
  }
  return orFail(ir::parseGraph(text + "}\n"));
}

// Node times as the search reckons with them add up to the step of a schedule that does nothing
// else.
TEST(LaunchOverhead, WithoutCopiesAStepTakesWhatItsNodesDo) {
  int bound = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    tests::Random random(seed);
    const int64_t nodes = random.between(1, 12);
    const ir::Graph graph = makeChain(nodes, random.between(0, nodes));
    ir::NodeCosts costs;
    std::vector<ir::Command> commands;
    int64_t work = 0;
    for (int64_t i = 0; i < nodes; ++i) {
      costs.nodes.push_back({.work = Nanoseconds(random.between(0, 100)),
                             .launch = Nanoseconds(random.between(0, 100))});
      work += costs.nodes.back().work.value();
      commands.push_back({.kind = ir::CommandKind::kRun, .node = ir::NodeId(size_t(i))});
    }
    costs.scalars = Nanoseconds(random.chance(30) ? random.between(0, 500) : 0);
    for (const ir::GraphMode mode :
         {ir::GraphMode::kNone, ir::GraphMode::kNoUpdate, ir::GraphMode::kWhole}) {
      int64_t sum = work;
      for (const Nanoseconds wait :
           ir::findLaunchWaits(graph, {costs.nodes, costs.scalars}, mode)) {
        sum += wait.value();
      }
      Steps steps;
      for (const ir::OpCost& cost : costs.nodes) steps.add(Stream::kCompute, cost.work.value(), 0);
      steps.launchOverheads = findLaunchOverheads(graph, mode, costs, commands);
      const std::vector<size_t> meetings = findMeetings(graph, mode, commands);
      const Timeline timeline = simulateTiming({steps.streams,
                                                steps.durations,
                                                steps.dependencies,
                                                meetings,
                                                {},
                                                steps.launchOverheads});
      // The search rounds each wait down.
      ASSERT_LE(sum, timeline.stepTime.value()) << "seed " << seed;
      ASSERT_GE(sum + nodes + 1, timeline.stepTime.value()) << "seed " << seed;
      bound += sum > work;
    }
  }
  EXPECT_GT(bound, 1000);
}

}  // namespace
}  // namespace stowage::planner
