// SPDX-License-Identifier: Apache-2.0
//
// How late a prefetch may start, and when it runs once its bytes are free late.
#include "planner/evaluate/prefetch_order.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::Role;
using tests::units;
using tests::us;
using enum ir::GapAction;

void expectAt(const ComputePosition& position, int64_t launch, int64_t offset) {
  EXPECT_EQ(position.launch, launch);
  EXPECT_EQ(position.offset, offset);
}

/// The worked step with another size of `a`, and its plan up to the enqueue order.
struct Planned {
  explicit Planned(int size)
      : step(tests::workedStepWith(size)),
        expansion(llvm::cantFail(expand(step.table, {kKeep, kHost, kKeep}))),
        copies(scheduleCopies(step.table, expansion, units(8))),
        order(findEnqueueOrder(step.table, expansion, copies)) {}
  const tests::SmallProblem step;
  const Expansion expansion;
  CopySchedule copies;
  const EnqueueOrder order;
};

// `last` begins at 20 us. 2 units take 2 us, and the same again is kept in reserve: 16 us, which is
// 4 us into `other`. 8 units have no time to spare: the start stays when `wide` ends.
TEST(PrefetchOrder, APrefetchKeepsItsOwnDurationInReserve) {
  expectAt(Planned(2).copies.latest[0], 4, us(4));
  const Planned worked(8);
  expectAt(worked.copies.in[0].start, 3, us(1));
  expectAt(worked.copies.latest[0], 3, us(1));
}

// Both are due at launch 3, at 20 us, and take 3 us: one ends at 17 us at the latest, so that its
// reserve fits, and the other starts 3 us before that one. Of a deadline at 0 us, 6 us before it
// are 24 us of the step before: 4 us into its launch 3, which is -1.
TEST(PrefetchOrder, PrefetchesOfOneLinkFollowEachOther) {
  const tests::SmallProblem step({.items = {{Role::kFrozen, 3}, {Role::kFrozen, 3}}});
  Expansion expansion;
  expansion.launches.resize(4);
  expansion.liveRanges = {{.storage = ir::StorageId(0)}, {.storage = ir::StorageId(1)}};
  expansion.prefetches = {{.liveRange = 0, .deadline = 3}, {.liveRange = 1, .deadline = 3}};
  CopySchedule copies;
  copies.place = {{-4, 0}, {-4, 0}};
  copies.launchStarts = {0, 0, us(10), us(20)};
  copies.length = us(30);
  CopySchedule early = copies;
  findLatestStarts(step.table, expansion, copies);
  expectAt(copies.latest[1], 2, us(4));
  expectAt(copies.latest[0], 2, us(1));
  expansion.prefetches[0].deadline = 1;
  findLatestStarts(step.table, expansion, early);
  expectAt(early.latest[1], 2, us(4));
  expectAt(early.latest[0], -1, us(4));
}

// Prefetch 1 is an input's. Prefetch 2 would run after it, prefetch 0 is over by then.
TEST(PrefetchOrder, AnInputIsPrefetchedAfterTheStepBoundary) {
  Expansion expansion;
  expansion.prefetches = {{}, {.ofThisStep = true}, {}};
  CopySchedule copies;
  copies.in = {{{-3, 0}, {-2, 0}}, {{-2, us(1)}, {-1, 0}}, {{-1, 0}, {1, us(2)}}};
  enqueueInputsAfterBoundary(expansion, copies);
  expectAt(copies.in[0].start, -3, 0);
  expectAt(copies.in[1].start, 0, 0);
  expectAt(copies.in[1].end, 1, 0);
  expectAt(copies.in[2].start, 0, 1);
  expectAt(copies.in[2].end, 1, us(2));
}

// Ticks: 9 wide ends, 10 bytes free for the prefetch, 11 prefetch begins, 12 other begins. If its
// bytes are free from tick 13 on, it begins after tick 12: with `other`.
TEST(PrefetchOrder, APrefetchIsPutOffUntilItsBytesAreFree) {
  Planned plan(2);
  EXPECT_FALSE(putOff(plan.step.table, plan.expansion, plan.order, {0, 0}, plan.copies));
  expectAt(plan.copies.in[0].start, 3, us(1));
  EXPECT_TRUE(putOff(plan.step.table, plan.expansion, plan.order, {0, 3}, plan.copies));
  expectAt(plan.copies.place[0], 4, 0);
  expectAt(plan.copies.in[0].start, 4, 0);
  expectAt(plan.copies.latest[0], 4, us(4));
}

}  // namespace
}  // namespace stowage::planner
