// SPDX-License-Identifier: Apache-2.0
//
// The bound at one node, on items written down by hand: offloads, items that the host has already,
// and recomputes. Bytes are units, times are us.
#include "planner/bound/peak_bound.h"

#include <gtest/gtest.h>

namespace stowage::planner {
namespace {

constexpr double kNear = 1e-4;

/// Nodes of these times; a copy of one unit takes 1 us.
PeakFrame makeFrame(const std::vector<double>& nodeTimes) {
  PeakFrame frame{.timeBefore = {0}, .outPerByte = 1, .inPerByte = 1};
  for (const double time : nodeTimes) frame.timeBefore.push_back(frame.timeBefore.back() + time);
  return frame;
}

/// 8000 units beside node 1, which needs 8000 itself; written by node 0 and read by node 2. Nodes
/// take 1000 us each, so that the solver's tolerance of 1 does not matter.
constexpr double kLong = 1000;
PeakItem makeItem() {
  return {.bytes = 8 * kLong, .written = 0, .read = 2, .dirty = true, .mayHost = true};
}
Peak makePeak(PeakItem item) { return {.node = 1, .need = 16 * kLong, .items = {item}}; }
const std::vector<double> kNodeTimes = {kLong, kLong, kLong};

// `wide` is node 2 and needs 16 units with a, which node 0 writes and node 4 reads. T1 >= 11 and
// T2 >= 10 us. If `other` takes 4 instead of 8 us, the prefetch is longer: T2 >= 8 + 1.
TEST(PeakBound, TheWorkedStep) {
  const PeakItem a{.bytes = 8, .written = 0, .read = 4, .dirty = true, .mayHost = true};
  const Peak wide{.node = 2, .need = 16, .items = {a}};
  EXPECT_NEAR(boundAtPeak(wide, makeFrame({1, 10, 1, 8, 1}), 8), 21, kNear);
  EXPECT_NEAR(boundAtPeak(wide, makeFrame({1, 10, 1, 4, 1}), 8), 11 + 9, kNear);
  EXPECT_NEAR(boundAtPeak(wide, makeFrame({1, 10, 1, 4, 1}), 16), 17, kNear) << "the peak fits";
}

// The offload runs from the end of node 0 on, the prefetch until the begin of node 2 at half the
// speed. What the host has already is not offloaded. A budget of no bytes bounds like the most that
// can leave.
TEST(PeakBound, WhatTheHostHasNeedNotBeOffloaded) {
  PeakFrame frame = makeFrame(kNodeTimes);
  frame.inPerByte = 2;
  EXPECT_NEAR(boundAtPeak(makePeak(makeItem()), frame, 8 * kLong), (1 + 8 + 16 + 1) * kLong, 1);
  EXPECT_NEAR(boundAtPeak(makePeak(makeItem()), frame, 0), (1 + 8 + 16 + 1) * kLong, 1);
  PeakItem clean = makeItem();
  clean.written = -1;
  clean.dirty = false;
  EXPECT_NEAR(boundAtPeak(makePeak(clean), frame, 8 * kLong), (1 + 16 + 1) * kLong, 1);
}

// In thousands: a recompute of 4 us lengthens the step by 4 us. Two items of one maker pay for it
// once.
TEST(PeakBound, ARecomputeIsPaidOncePerMaker) {
  const PeakFrame frame = makeFrame(kNodeTimes);
  PeakItem half = makeItem();
  half.bytes = 4 * kLong;
  half.mayHost = false;
  half.maker = 0;
  Peak peak{.node = 1, .need = 16 * kLong, .items = {half, half}, .makerTime = {4 * kLong}};
  EXPECT_NEAR(boundAtPeak(peak, frame, 8 * kLong), (3 + 4) * kLong, 1);
  peak.items[1].maker = 1;
  peak.makerTime.push_back(4 * kLong);
  EXPECT_NEAR(boundAtPeak(peak, frame, 8 * kLong), (3 + 4 + 4) * kLong, 1);
}

// In thousands: a recompute takes 40 us. If a part f of the bytes is offloaded, T1 >= 1 + 8 f and
// T2 >= 1 + 8 f (prefetch) and T2 >= 2 + 40 (1 - f) (recompute). The sum is least where both rows
// of T2 are equal, at f = 41 / 48.
TEST(PeakBound, PartOfAnItemMayBeOffloadedAndPartRecomputed) {
  PeakItem item = makeItem();
  item.maker = 0;
  Peak peak = makePeak(item);
  peak.makerTime = {40 * kLong};
  const double part = 41.0 / 48;
  EXPECT_NEAR(boundAtPeak(peak, makeFrame(kNodeTimes), 8 * kLong), (2 + 16 * part) * kLong, 1);
}

}  // namespace
}  // namespace stowage::planner
