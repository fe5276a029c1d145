// SPDX-License-Identifier: Apache-2.0
//
// When copies run: offloads from the last write on, prefetches as early as the bytes allow.
#include "planner/evaluate/copy_schedule.h"

#include <gtest/gtest.h>

#include "planner/evaluate/launch_loads.h"
#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::Role;
using tests::units;
using tests::us;
using enum ir::GapAction;
using Times = std::vector<int64_t>;

CopySchedule schedule(const GapTable& table, const std::vector<ir::GapAction>& actions,
                      int64_t prefetchLimit) {
  return scheduleCopies(table, llvm::cantFail(expand(table, actions)), prefetchLimit);
}
void expectAt(const ComputePosition& position, int64_t launch, int64_t offset) {
  EXPECT_EQ(position.launch, launch);
  EXPECT_EQ(position.offset, offset);
}

// Node k is launch k + 1. The offload takes 8 us from when `make` ends: into `read`. The prefetch
// takes 8 us from when `wide` ends, because `wide` needs all of the 8 units.
TEST(CopySchedule, HidesTheCopiesOfTheWorkedStep) {
  const tests::WorkedPlan plan;
  const CopySchedule copies = schedule(plan.table, plan.actions, units(8));
  expectAt(copies.out[0].start, 1, us(1));
  expectAt(copies.out[0].end, 2, us(8));
  expectAt(copies.in[0].start, 3, us(1));
  expectAt(copies.in[0].end, 4, us(8));
  EXPECT_EQ(copies.launchStarts, (Times{0, 0, us(1), us(11), us(12), us(20)}));
  EXPECT_EQ(copies.length, us(21));
  const Expansion expansion = llvm::cantFail(expand(plan.table, plan.actions));
  EXPECT_EQ(computeLoads(plan.table, expansion),
            (Times{0, units(8), units(8), units(8), 0, units(8)}));
}

// The bytes of `a` are gone when `read` ends at 11 us. But `wide`, two launches later, needs 8
// units too: the prefetch has to be after it, unless the limit has room for both.
TEST(CopySchedule, APrefetchLeavesTheBytesThatLaunchesBeforeItsDeadlineNeed) {
  const tests::SmallProblem step({.items = {{Role::kActivation, 8}},
                                  .nodes = {{.op = "test.make.default", .time = 1, .results = {0}},
                                            {.op = "test.read.default", .time = 10, .reads = {0}},
                                            {.op = "test.other.default", .time = 8},
                                            {.op = "test.wide.default", .time = 1, .temporary = 8},
                                            {.op = "test.last.default", .time = 1, .reads = {0}}}});
  expectAt(schedule(step.table, {kKeep, kHost, kKeep}, units(15)).in[0].start, 4, us(1));
  const CopySchedule copies = schedule(step.table, {kKeep, kHost, kKeep}, units(16));
  expectAt(copies.in[0].start, 2, us(10));
  expectAt(copies.in[0].end, 3, us(8));
}

// Nothing hides the copies here: `wide` waits until the offload ends at 9 us. The prefetch ends 9
// us after `wide` began, and `last` has not begun by then.
TEST(CopySchedule, ComputeWaitsForBytesThatLeaveAndForBytesThatCome) {
  const tests::SmallProblem step({.items = {{Role::kActivation, 8}},
                                  .nodes = {{.op = "test.make.default", .time = 1, .results = {0}},
                                            {.op = "test.wide.default", .time = 1, .temporary = 8},
                                            {.op = "test.last.default", .time = 1, .reads = {0}}}});
  const CopySchedule copies = schedule(step.table, {kHost, kKeep}, units(8));
  expectAt(copies.out[0].end, 1, us(9));
  EXPECT_EQ(copies.launchStarts[2], us(9));
  expectAt(copies.in[0].start, 2, us(1));
  expectAt(copies.in[0].end, 2, us(9));
}

// Node 0 makes both; node 1 still reads s0, so s1 can go first, although s0 has the lower number.
TEST(CopySchedule, WhatCanGoFirstLeavesFirst) {
  const tests::SmallProblem step(
      {.items = {{Role::kActivation, 1}, {Role::kActivation, 1}},
       .nodes = {{.op = "test.make.default", .time = 1, .results = {0, 1}},
                 {.op = "test.read.default", .time = 4, .reads = {0}},
                 {.op = "test.wide.default", .time = 1, .temporary = 2},
                 {.op = "test.last.default", .time = 1, .reads = {0, 1}}}});
  const CopySchedule copies =
      schedule(step.table, {/*s0*/ kKeep, kHost, kKeep, /*s1*/ kHost, kKeep}, units(2));
  expectAt(copies.out[1].start, 1, us(1));
  expectAt(copies.out[0].start, 2, us(1));
}

}  // namespace
}  // namespace stowage::planner
