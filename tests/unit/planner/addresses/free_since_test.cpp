// SPDX-License-Identifier: Apache-2.0
//
// When the bytes of an item that may begin late are free.
#include "planner/addresses/free_since.h"

#include <gtest/gtest.h>

#include "tests/support/worked_step.h"

namespace stowage::planner {
namespace {

using Delays = std::vector<int64_t>;

// The prefetch of `a` may begin from tick 10 on and must by tick 12 (evaluate/README.md). All items
// are at offset 0.
TEST(FreeSince, APrefetchBeginsWhenTheTemporariesBeforeItAreGone) {
  const int64_t bytes = tests::WorkedStep::units(8).value();
  std::vector<ArenaItem> items = {{.bytes = bytes, .alive = {2, 8}, .latest = 2},
                                  {.bytes = bytes, .alive = {8, 10}, .latest = 8},
                                  {.bytes = bytes, .alive = {10, 18}, .latest = 12}};
  EXPECT_EQ(findDelays(items, {0, 0, 0}, 18), (Delays{0, 0, 0}));
  items[1].alive.end = 11;
  EXPECT_EQ(findDelays(items, {0, 0, 0}, 18), (Delays{0, 0, 1}));
  EXPECT_EQ(findDelays(items, {0, bytes, 0}, 18), (Delays{0, 0, 0})) << "other bytes";
}

// Item 0 leaves two bytes at tick 10; item 1 uses the lower one until tick 30. Who wants both waits
// for item 1, who wants the upper one for item 0.
TEST(FreeSince, TheLastOfItsBytesCounts) {
  std::vector<ArenaItem> items = {{.bytes = 2, .alive = {0, 10}},
                                  {.bytes = 1, .alive = {10, 30}, .latest = 10},
                                  {.bytes = 2, .alive = {5, 50}, .latest = 40}};
  EXPECT_EQ(findDelays(items, {0, 0, 0}, 100), (Delays{0, 0, 25}));
  items[2].bytes = 1;
  EXPECT_EQ(findDelays(items, {0, 0, 1}, 100), (Delays{0, 0, 5}));
}

// Item 0 ends at tick 98; item 1 wants its bytes at tick 95 and may come at tick 20 of the next
// step.
TEST(FreeSince, AStepWaitsForTheEndOfTheStepBefore) {
  const std::vector<ArenaItem> items = {{.bytes = 1, .alive = {60, 98}, .latest = 60},
                                        {.bytes = 1, .alive = {95, 140}, .latest = 120}};
  EXPECT_EQ(findDelays(items, {0, 0}, 100), (Delays{0, 3}));
  const std::vector<ArenaItem> across = {{.bytes = 1, .alive = {80, 110}, .latest = 80},
                                         {.bytes = 1, .alive = {2, 50}, .latest = 20}};
  EXPECT_EQ(findDelays(across, {0, 0}, 100), (Delays{0, 8}));
}

TEST(FreeSince, WhatMayNotBeginLateIsNotPutOff) {
  const std::vector<ArenaItem> items = {{.bytes = 1, .alive = {0, 30}},
                                        {.bytes = 1, .alive = {20, 50}, .latest = 20},
                                        {.bytes = 0, .alive = {20, 50}, .latest = 40},
                                        {.bytes = 1, .alive = {20, 120}, .latest = 90}};
  EXPECT_EQ(findDelays(items, {0, 0, 0, 0}, 100), (Delays{0, 0, 0, 0}));
}

}  // namespace
}  // namespace stowage::planner
