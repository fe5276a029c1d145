// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/timed_part.h"

#include <gtest/gtest.h>

#include <utility>

namespace stowage::tests {
namespace {

using Split = std::pair<int64_t, int64_t>;  // steps without times, then with

Split splitOf(int64_t steps, int64_t most) {
  const runtime::TimedPart part = runtime::splitSteps(steps, most);
  return {part.untimed, part.timed};
}

TEST(TimedPart, StepsWithoutTimesComeFirst) {
  EXPECT_EQ(splitOf(21, 10), Split(10, 10));
  EXPECT_EQ(splitOf(200, 10), Split(10, 10)) << "the rest is trained as ever";
  EXPECT_EQ(splitOf(20, 0), Split(0, 0));
}

TEST(TimedPart, AShortRunTakesTimesFirstOfAll) {
  EXPECT_EQ(splitOf(16, 10), Split(5, 10));
  EXPECT_EQ(splitOf(14, 10), Split(3, 10));
  EXPECT_EQ(splitOf(13, 10), Split(0, 10)) << "two steps say nothing";
  EXPECT_EQ(splitOf(5, 10), Split(0, 4));
  EXPECT_EQ(splitOf(1, 10), Split(0, 0)) << "the first step is left out";
  EXPECT_EQ(splitOf(0, 10), Split(0, 0));
}

Split measured(Nanoseconds step, bool mayBeLaunchBound) {
  const runtime::TimedPart part = runtime::partToMeasure(step, mayBeLaunchBound);
  return {part.untimed, part.timed};
}

TEST(TimedPart, LaunchBoundStepsAreMeasuredForSeconds) {
  constexpr int64_t kMillisecond = 1'000'000;
  EXPECT_EQ(measured(Nanoseconds(15 * kMillisecond), true), Split(200, 20));
  EXPECT_EQ(measured(Nanoseconds(kMillisecond), true), Split(500, 20));
  EXPECT_EQ(measured(Nanoseconds(300 * kMillisecond), true), Split(10, 10));
  EXPECT_EQ(measured(Nanoseconds(2000 * kMillisecond), true), Split(5, 5));
  EXPECT_EQ(measured(Nanoseconds(0), true), Split(500, 20)) << "nothing is predicted";
}

TEST(TimedPart, WhatCannotBeLaunchBoundNeedsNoStepsWithoutTimes) {
  EXPECT_EQ(measured(Nanoseconds(15'000'000), false), Split(0, 20));
}

}  // namespace
}  // namespace stowage::tests
