// SPDX-License-Identifier: Apache-2.0
#include "planner/correct/launch_times.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace stowage::tests {
namespace {

using ir::CommandTimes;
using ir::StepTimes;
using Overheads = std::vector<std::optional<Nanoseconds>>;

/// Enqueued in [launchBegin, launchEnd), done at `end`.
CommandTimes times(int64_t launchBegin, int64_t launchEnd, int64_t end) {
  return {Nanoseconds(launchBegin), Nanoseconds(launchEnd), Nanoseconds(end - 1), Nanoseconds(end)};
}

/// A prefetch of an input, then two launches.
ir::Schedule makeSchedule() {
  ir::Schedule schedule;
  schedule.commands.resize(3);
  schedule.commands[0] = {.kind = ir::CommandKind::kCopy, .stream = ir::Stream::kHostToDevice};
  schedule.commands[0].from = ir::ResidencyId(0);
  schedule.commands[0].to = ir::ResidencyId(1);
  return schedule;
}

StepTimes makeStep(int64_t at) {
  return {.step = 0,
          .commands = {times(at + 10, at + 12, at + 14), times(at + 13, at + 20, at + 25),
                       times(at + 21, at + 30, at + 35)}};
}

TEST(LaunchTimes, EachCommandHasItsOwnAndTheFirstLaunchWhatComesBetweenSteps) {
  const auto found =
      planner::findLaunchTimes(makeSchedule(), {makeStep(0), makeStep(100), makeStep(200)});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0], Overheads(3)) << "what was under way is not known";
  EXPECT_EQ(found[1], (Overheads{Nanoseconds(2), Nanoseconds(20 - 12), Nanoseconds(30 - 20)}))
      << "when its thread was free is not known";
  // The thread was free from 130, the end of the step before, to 210, when it began the copy.
  EXPECT_EQ(found[2], (Overheads{Nanoseconds(2), Nanoseconds(8 + 80), Nanoseconds(10)}));
}

TEST(LaunchTimes, WaitingForEarlierStepsIsNoLaunchOverhead) {
  StepTimes slow = makeStep(0);
  slow.commands[2]->end = Nanoseconds(195);
  const auto found = planner::findLaunchTimes(makeSchedule(), {slow, makeStep(100), makeStep(200)});
  EXPECT_EQ(found[2][1], Nanoseconds(8 + 210 - 195));
  StepTimes prefetched = makeStep(100);
  prefetched.commands[0]->end = Nanoseconds(205);
  const auto bound =
      planner::findLaunchTimes(makeSchedule(), {makeStep(0), prefetched, makeStep(200)});
  EXPECT_EQ(bound[2][1], Nanoseconds(8 + 210 - 205)) << "its input's place was free then";
  // A prefetch of what the step itself brings to the host is waited for by nobody.
  ir::Schedule offloads = makeSchedule();
  offloads.commands.push_back({.kind = ir::CommandKind::kCopy});
  offloads.commands.back().to = ir::ResidencyId(0);
  std::vector<StepTimes> steps = {makeStep(0), prefetched, makeStep(200)};
  for (StepTimes& step : steps) step.commands.emplace_back();
  EXPECT_EQ(planner::findLaunchTimes(offloads, steps)[2][1], Nanoseconds(8 + 210 - 130));
}

TEST(LaunchTimes, WaitingForAStepsNumbersIsNoLaunchOverhead) {
  std::vector<StepTimes> steps = {makeStep(0), makeStep(100), makeStep(200)};
  for (StepTimes& step : steps) {
    step.commands[2]->launchBegin += Nanoseconds(50);
    step.commands[2]->launchEnd += Nanoseconds(50);
    step.commands[2]->end += Nanoseconds(50);
  }
  EXPECT_EQ(planner::findLaunchTimes(makeSchedule(), steps)[2][2], Nanoseconds(10 + 50));
  EXPECT_EQ(planner::findLaunchTimes(makeSchedule(), steps, /*firstUpdate=*/2)[2][2],
            Nanoseconds(30 - 21));
  for (StepTimes& step : steps) step.commands[1].reset();  // an update that launched nothing
  EXPECT_EQ(planner::findLaunchTimes(makeSchedule(), steps, /*firstUpdate=*/1)[2][2],
            Nanoseconds(30 - 21 + 210 - 180))
      << "it is the first launch, and has what came between the steps";
}

TEST(LaunchTimes, AThreadThatMayBeHeldBackSaysNothing) {
  constexpr int64_t kLaunches = 200;
  ir::Schedule schedule;
  schedule.commands.resize(kLaunches);
  // An op is launched every 10, and done when `ahead` others have been launched.
  const auto found = [&](int64_t ahead) {
    std::vector<StepTimes> steps(2);
    for (int64_t i = 0; i < 2 * kLaunches; ++i) {
      steps[i / kLaunches].commands.emplace_back(times(10 * i, 10 * i + 5, 10 * (i + ahead) + 7));
    }
    return planner::findLaunchTimes(schedule, steps)[1];
  };
  EXPECT_EQ(found(100)[150], Nanoseconds(10));
  EXPECT_EQ(found(150)[150], std::nullopt);
}

}  // namespace
}  // namespace stowage::tests
