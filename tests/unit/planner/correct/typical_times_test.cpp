// SPDX-License-Identifier: Apache-2.0
//
// Typical times of the measured step of planner/correct/README.md.
#include "planner/correct/typical_times.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tests/unit/planner/correct/measured_step.h"

namespace stowage::tests {
namespace {

using ir::StepTimes;

TEST(TypicalTimes, DurationsAreMeansOfTheMiddleSteps) {
  const ir::Schedule schedule = makeSchedule();
  std::vector<StepTimes> steps;
  for (const int64_t longer : {4, 0, 1000, 6, 2}) {
    steps.push_back(makeStep(static_cast<int64_t>(steps.size()), 2000 * steps.size()));
    steps.back().commands[kLast]->end += Nanoseconds(longer);
    steps.back().commands[kPrefetch].reset();
  }
  using planner::CountedFrom;
  const auto typical = planner::typicalDurations(schedule, steps, CountedFrom::kBegin);
  EXPECT_EQ(typical[kLast], Nanoseconds(27 + 4));
  EXPECT_EQ(typical[kPrefetch], std::nullopt);
  // Without the prefetch it waited for, the reader's bytes were there at 20.
  const auto ready = planner::typicalDurations(schedule, steps, CountedFrom::kReady);
  EXPECT_EQ(ready[kReader], Nanoseconds(8 + 32));
  EXPECT_EQ(ready[kLast], Nanoseconds(27 + 4 + 3));
  EXPECT_EQ(ready[kPrefetch], std::nullopt);
  EXPECT_TRUE(planner::typicalDurations(schedule, {}, CountedFrom::kReady).empty());
}

// A quarter of the steps is left out at each end, by the time of launches. The copies of the middle
// two take longest and shortest.
TEST(TypicalTimes, CopiesDoNotDecideWhichStepsAreTheMiddle) {
  const ir::Schedule schedule = makeSchedule();
  const std::vector<std::pair<int64_t, int64_t>> longer = {{0, 70}, {2, 500}, {4, 20}, {9, 90}};
  std::vector<StepTimes> steps;
  for (const auto& [launch, copy] : longer) {
    steps.push_back(makeStep(static_cast<int64_t>(steps.size()), 2000 * steps.size()));
    steps.back().commands[kLast]->end += Nanoseconds(launch);
    steps.back().commands[kOffload]->end += Nanoseconds(copy);
  }
  const auto typical = planner::typicalDurations(schedule, steps, planner::CountedFrom::kBegin);
  EXPECT_EQ(typical[kLast], Nanoseconds(27 + (2 + 4) / 2));
  EXPECT_EQ(typical[kOffload], Nanoseconds(90 + (500 + 20) / 2));
  steps.pop_back();
  EXPECT_EQ(planner::typicalDurations(schedule, steps, planner::CountedFrom::kBegin)[kLast],
            Nanoseconds(27 + (0 + 2 + 4) / 3))
      << "a quarter of three steps is none";
}

TEST(TypicalTimes, AMeanIsThatOfTheStepsThatHaveTheCommand) {
  std::vector<StepTimes> steps = {makeStep(0, 0), makeStep(1, 2000), makeStep(2, 4000)};
  steps[0].commands[kPrefetch].reset();
  steps[1].commands[kPrefetch]->begin -= Nanoseconds(6);
  const auto typical =
      planner::typicalDurations(makeSchedule(), steps, planner::CountedFrom::kBegin);
  EXPECT_EQ(typical[kPrefetch], Nanoseconds((46 + 40) / 2));
}

/// Costs of the schedule's only node.
ir::NodeCosts aloneFor(int64_t time) {
  ir::NodeCosts costs;
  costs.nodes.push_back({.work = Nanoseconds(time)});
  return costs;
}

constexpr int64_t kMicrosecond = 1000;

/// All times in microseconds.
planner::TypicalTimes typicalOf(StepTimes step, int64_t alone) {
  const auto scale = [](Nanoseconds& time) { time = Nanoseconds(time.value() * kMicrosecond); };
  for (auto& times : step.commands) {
    if (!times) continue;
    for (Nanoseconds* time : {&times->launchBegin, &times->launchEnd, &times->begin, &times->end}) {
      scale(*time);
    }
  }
  planner::TypicalTimes typical =
      planner::typicalTimes(makeSchedule(), {step}, aloneFor(alone * kMicrosecond));
  for (auto& time : typical.work) {
    if (time) time = Nanoseconds(time->value() / kMicrosecond);
  }
  return typical;
}

TEST(TypicalTimes, CountWorkFromWhereALaunchCouldHaveBegun) {
  const planner::TypicalTimes times = typicalOf(makeStep(0, 0), 1);
  EXPECT_EQ(times.work[kReader], Nanoseconds(8 + 2));
  EXPECT_EQ(times.work[kFirst], Nanoseconds(10));
  EXPECT_EQ(times.work[kPrefetch], Nanoseconds(40));
}

TEST(TypicalTimes, WorkOfALaunchThatWasLate) {
  const planner::TypicalTimes times = typicalOf(makeStep(0, 0), 1);
  // Of the 3 in which the device began it, so much is work as others have: the reader has 2.
  EXPECT_EQ(times.work[kLast], Nanoseconds(27 + 2));
  EXPECT_TRUE(planner::typicalTimes(makeSchedule(), {}, aloneFor(1)).work.empty());
}

TEST(TypicalTimes, ALaunchThatBeganBeforeItsLastKernelWasLaunchedMayHaveWaitedInside) {
  StepTimes step = makeStep(0, 0);
  step.commands[kLast] = times(/*launchEnd=*/80, /*begin=*/63, /*end=*/100);
  const auto expectDivided = [&](int64_t alone, int64_t work) {
    const planner::TypicalTimes times = typicalOf(step, alone);
    EXPECT_EQ(times.work[kLast], Nanoseconds(work + 2)) << "alone " << alone;
  };
  expectDivided(/*alone=*/25, /*work=*/25);
  expectDivided(/*alone=*/5, /*work=*/20);   // what came after its last kernel was launched
  expectDivided(/*alone=*/90, /*work=*/37);  // all of it
}

// A launch just before compute is free has not reached the device by then.
TEST(TypicalTimes, ALaunchJustInTimeIsLate) {
  StepTimes step = makeStep(0, 0);
  step.commands[kReader] = times(/*launchEnd=*/47, /*begin=*/52, /*end=*/60);
  EXPECT_EQ(typicalOf(step, 1).work[kReader], Nanoseconds(8)) << "of 2 nothing is work";
  step.commands[kReader] = times(/*launchEnd=*/45, /*begin=*/52, /*end=*/60);
  EXPECT_EQ(typicalOf(step, 1).work[kReader], Nanoseconds(8 + 2));
}

// The launch thread is done with the offload at 8 and with the last launch at 70; it begins that at
// 69. Before the first update it waits for the step's scalars.
TEST(TypicalTimes, LaunchOverheadIsThatOfTheStepsWhoseBeforeIsKnown) {
  const std::vector<StepTimes> steps = {makeStep(0, 0), makeStep(1, 2000), makeStep(2, 4000)};
  const auto launchOf = [&](llvm::ArrayRef<StepTimes> of, size_t firstUpdate = SIZE_MAX) {
    return planner::typicalTimes(makeSchedule(), of, aloneFor(1), firstUpdate).launch;
  };
  EXPECT_EQ(launchOf(steps)[kReader], Nanoseconds(1));
  EXPECT_EQ(launchOf(steps)[kLast], Nanoseconds(70 - 8));
  EXPECT_EQ(launchOf(steps, kLast)[kLast], Nanoseconds(70 - 69));
  EXPECT_EQ(launchOf(llvm::ArrayRef(steps).take_front())[kLast], std::nullopt);
}

}  // namespace
}  // namespace stowage::tests
