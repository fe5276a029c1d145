// SPDX-License-Identifier: Apache-2.0
//
// Slots of the worked step: nodes of 1, 10, 1, 8 and 1 us.
#include "planner/flow/step_slots.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

TEST(StepSlots, EachHasItsWidestNodeAndItsTime) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const StepSlots slots = cutStep(table, {8, 8, 16, 3, 8}, 2);
  ASSERT_EQ(slots.count(), 2);
  EXPECT_EQ(slots.slotOf, (std::vector<int32_t>{0, 0, 1, 1, 1}));
  EXPECT_EQ(slots.widest, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(slots.time, (std::vector<int64_t>{tests::us(11), tests::us(10)}));
  EXPECT_EQ(slots.load, (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(slots.slotAt(-1), 1);
  EXPECT_EQ(slots.slotAt(6), 0);
}

// By time alone the two long nodes would have three of the four slots.
TEST(StepSlots, AFewLongNodesLeaveTheOthersTheirSlots) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const StepSlots slots = cutStep(table, {1, 1, 1, 1, 1}, 4);
  EXPECT_EQ(slots.slotOf, (std::vector<int32_t>{0, 0, 1, 2, 3}));
  EXPECT_EQ(slots.time,
            (std::vector<int64_t>{tests::us(11), tests::us(1), tests::us(8), tests::us(1)}));
}

TEST(StepSlots, NoneIsEmpty) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  const StepSlots slots = cutStep(table, {1, 1, 1, 1, 1}, 96);
  ASSERT_EQ(slots.count(), 5);
  EXPECT_EQ(slots.first, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace stowage::planner
