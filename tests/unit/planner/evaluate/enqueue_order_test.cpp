// SPDX-License-Identifier: Apache-2.0
//
// The one order of all starts and ends of a step: ticks, commands, live ranges.
#include "planner/evaluate/enqueue_order.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::Role;
using ir::TickRange;
using tests::us;
using enum ir::GapAction;

/// "L1 O0 P0": launch 1, offload 0, prefetch 0.
std::string commands(const EnqueueOrder& order) {
  std::string text;
  for (const EnqueuedCommand& command : order.commands) {
    text += (text.empty() ? "" : " ") + std::string(1, "LOP"[static_cast<int>(command.kind)]) +
            std::to_string(command.index);
  }
  return text;
}

// The table of planner/evaluate/README.md. Node k is launch k + 1.
TEST(EnqueueOrder, GivesTheTicksOfTheWorkedStep) {
  const tests::WorkedPlan plan;
  const Expansion expansion = llvm::cantFail(expand(plan.table, plan.actions));
  const CopySchedule copies = scheduleCopies(plan.table, expansion, tests::units(8));
  const EnqueueOrder order = findEnqueueOrder(plan.table, expansion, copies);
  EXPECT_EQ(order.period, 18);
  EXPECT_EQ(commands(order), "L1 O0 L2 L3 P0 L4 L5");
  EXPECT_EQ(order.launches, (std::vector<TickRange>{/*boundary*/ {0, 2}, /*make*/ {2, 4},
                                                    /*read*/ {5, 8}, /*wide*/ {8, 10},
                                                    /*other*/ {13, 15}, /*last*/ {16, 18}}));
  EXPECT_EQ(order.offloadStarts, std::vector<int64_t>{4});
  EXPECT_EQ(order.positions[4], (ComputePosition{1, us(1)})) << "the offload begins";
  EXPECT_EQ(order.positions[6], (ComputePosition{2, us(8)})) << "the offload ends";
  EXPECT_EQ(order.positions[15], (ComputePosition{4, us(8)})) << "the prefetch ends";
  // `a` lives from when `make` begins until `read` ends, and from when its bytes are free for the
  // prefetch, at the latest tick 12, until `last` ends.
  EXPECT_EQ(order.liveTicks, (std::vector<TickRange>{{2, 8}, {10, 18}}));
  EXPECT_EQ(order.latestBegins, (std::vector<int64_t>{2, 12}));
  EXPECT_EQ(order.hosts, std::vector<TickRange>({{4, 16}})) << "from offload to prefetch";
}

// s0 is prefetched during launch 2 of the step before, from 2 us to 4 us after it began.
// Ticks: 0-1 boundary, 2-3 launch 1, 4 launch 2 begins, 5 place, 6 prefetch begins, 7 latest begin,
// 8 prefetch ends, 9 launch 2 ends. The live range begins at 5 and ends with launch 1 at 10 + 4.
TEST(EnqueueOrder, ALiveRangeMayCrossTheStepBoundary) {
  const tests::SmallProblem step({.items = {{Role::kFrozen}, {Role::kFrozen}},
                                  .nodes = {{.op = "test.read.default", .time = 1, .reads = {0, 1}},
                                            {.op = "test.other.default", .time = 10}}});
  const Expansion expansion = llvm::cantFail(expand(step.table, {kHost, kKeep}));
  CopySchedule copies;
  copies.in = {{{-1, us(2)}, {-1, us(4)}}};
  copies.place = copies.latest = {{-1, us(2)}};
  const EnqueueOrder order = findEnqueueOrder(step.table, expansion, copies);
  EXPECT_EQ(commands(order), "L1 L2 P0");
  EXPECT_EQ(order.period, 10);
  EXPECT_EQ(order.liveTicks[0], (TickRange{5, 14}));
  EXPECT_EQ(order.latestBegins[0], 7);
  EXPECT_EQ(order.liveTicks[1], (TickRange{0, 10})) << "s1 never leaves";
  EXPECT_EQ(order.hosts[0], (TickRange{0, 10})) << "the host keeps a parameter";
  EXPECT_TRUE(order.hosts[1].isEmpty());
}

// `read` and the offload end when the prefetch starts: both ends come first.
TEST(EnqueueOrder, AtEqualTimesAnEndMakesRoomForAStart) {
  const tests::WorkedPlan plan;
  const Expansion expansion = llvm::cantFail(expand(plan.table, plan.actions));
  CopySchedule copies;
  copies.out = {{{1, us(1)}, {2, us(10)}}};
  copies.in = {{{2, us(10)}, {4, 0}}};
  copies.place = copies.latest = {{2, us(10)}};
  const EnqueueOrder order = findEnqueueOrder(plan.table, expansion, copies);
  // 5 read begins, 6 read ends, 7 offload ends, 8 place, 9 prefetch begins, 10 latest, 11 wide.
  EXPECT_EQ(order.liveTicks, (std::vector<TickRange>{{2, 8}, {8, 18}}));
  EXPECT_EQ(order.launches[3].begin, 11);
  EXPECT_EQ(commands(order), "L1 O0 L2 P0 L3 L4 L5");
}

}  // namespace
}  // namespace stowage::planner
