// SPDX-License-Identifier: Apache-2.0
//
// Where one item after the other is placed: in the smallest hole that fits, among those that are
// alive at a common tick.
#include "planner/addresses/placer.h"

#include <gtest/gtest.h>

#include "tests/support/worked_step.h"

namespace stowage::planner {
namespace {

struct Placed {
  std::vector<int64_t> offsets;
  int64_t peak = 0;
};
/// Places all items in their order.
Placed placeInOrder(const std::vector<ArenaItem>& items, int64_t period, int64_t base = 0) {
  Placer placer(items, period, base);
  for (size_t i = 0; i < items.size(); ++i) placer.place(static_cast<int32_t>(i));
  return {.offsets = placer.takeOffsets(), .peak = placer.peak()};
}

// `a` before its offload, the temporaries of `wide`, `a` from its prefetch on (evaluate/README.md):
// none are alive at a common tick.
TEST(Placer, LiveRangesThatFollowEachOtherShareBytes) {
  const int64_t bytes = tests::WorkedStep::units(8).value();
  const Placed placed = placeInOrder({{.bytes = bytes, .alive = {2, 8}},
                                      {.bytes = bytes, .alive = {8, 10}},
                                      {.bytes = bytes, .alive = {12, 18}}},
                                     18);
  EXPECT_EQ(placed.offsets, (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(placed.peak, bytes);
}

// Items 0 and 2 end early and leave holes of four and two bytes below items 1 and 3.
TEST(Placer, TakesTheSmallestHoleThatFits) {
  const Placed placed = placeInOrder({{.bytes = 4, .alive = {0, 5}},
                                      {.bytes = 1, .alive = {0, 20}},
                                      {.bytes = 2, .alive = {0, 5}},
                                      {.bytes = 1, .alive = {0, 20}},
                                      {.bytes = 2, .alive = {5, 10}},
                                      {.bytes = 3, .alive = {5, 10}},
                                      {.bytes = 3, .alive = {5, 10}}},
                                     20);
  EXPECT_EQ(placed.offsets, (std::vector<int64_t>{0, 4, 5, 7, 5, 0, 8}));
  EXPECT_EQ(placed.peak, 11);
}

// Item 2 is alive before and after the step boundary, so it meets item 1 and the larger item 0.
TEST(Placer, AnItemThatCrossesTheStepBoundaryMeetsBothSides) {
  const Placed placed = placeInOrder({{.bytes = 2, .alive = {0, 2}},
                                      {.bytes = 1, .alive = {18, 20}},
                                      {.bytes = 1, .alive = {18, 22}},
                                      {.bytes = 1, .alive = {1, 3}},
                                      {.bytes = 1, .alive = {2, 18}}},
                                     20, /*base=*/10);
  EXPECT_EQ(placed.offsets, (std::vector<int64_t>{10, 10, 12, 13, 10}))
      << "item 3 meets 0 and 2, item 4 meets item 3 alone";
  EXPECT_EQ(placed.peak, 14);
}

// 640 ticks are ten slices. Item 1 is alive in all of them, item 3 in one, item 4 in five.
TEST(Placer, SlicesOfTheStepChangeNothing) {
  const Placed placed = placeInOrder({{.bytes = 2, .alive = {300, 301}},
                                      {.bytes = 2, .alive = {0, 639}},
                                      {.bytes = 2, .alive = {639, 640}},
                                      {.bytes = 2, .alive = {300, 301}},
                                      {.bytes = 2, .alive = {100, 420}},
                                      {.bytes = 2, .alive = {301, 303}}},
                                     640);
  EXPECT_EQ(placed.offsets, (std::vector<int64_t>{0, 2, 0, 4, 6, 0}));
}

}  // namespace
}  // namespace stowage::planner
