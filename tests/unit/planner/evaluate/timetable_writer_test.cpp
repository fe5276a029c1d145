// SPDX-License-Identifier: Apache-2.0
//
// What a timetable says: commands and times, stalls, reasons, and what is valid at the step
// boundary.
#include "planner/evaluate/timetable_writer.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::Role;
using tests::units;
using tests::us;
using enum ir::GapAction;

/// All parts in their order, without putting prefetches off.
Timetable write(const GapTable& table, const Actions& actions, int64_t prefetchLimit) {
  Draft draft = llvm::cantFail(draftTimetable(table, actions, prefetchLimit));
  AddressPlan addresses = planAddresses(table, draft.device, draft.order.period, prefetchLimit);
  planHostAddresses(table, draft.order, addresses);
  const DiskCopies disk =
      addDiskCopies(table, draft.expansion, addresses.hostPeak, draft.order.commands);
  return writeTimetable(
      {table, draft.expansion, draft.copies, draft.order, addresses, disk, actions});
}

/// "n0 0-1": node 0 from 0 to 1 us; "d2h", "h2d": copies.
std::string times(const Timetable& timetable) {
  std::string text;
  for (const TimedAction& action : timetable.actions) {
    const bool isLaunch = action.command.kind == ir::CommandKind::kRun;
    text += (text.empty() ? "" : ", ") +
            (isLaunch ? "n" + std::to_string(action.command.node.raw())
                      : ir::streamName(action.command.stream)) +
            " " + std::to_string(action.start.value() / tests::kUnitTime) + "-" +
            std::to_string(action.end.value() / tests::kUnitTime);
  }
  return text;
}

// The picture of planner/README.md.
TEST(TimetableWriter, WritesTheWorkedStep) {
  const tests::WorkedPlan plan;
  const Timetable timetable = write(plan.table, plan.actions, units(8));
  EXPECT_EQ(times(timetable), "n0 0-1, d2h 1-9, n1 1-11, n2 11-12, h2d 12-20, n3 12-20, n4 20-21");
  EXPECT_EQ(timetable.stepTime, Nanoseconds(us(21)));
  EXPECT_EQ(timetable.computeTime, Nanoseconds(us(21)));
  EXPECT_EQ(timetable.stalls.deviceToHost + timetable.stalls.hostToDevice, Nanoseconds(0));
  EXPECT_EQ(timetable.bytesOut, Bytes(units(8)));
  EXPECT_EQ(timetable.bytesIn, Bytes(units(8)));
  ASSERT_EQ(timetable.decisions.rows.size(), 1U);
  EXPECT_EQ(timetable.decisions.rows[0].why, "hidden");
  // The host copy, and `a` before and after it was away.
  EXPECT_EQ(timetable.residencies,
            (std::vector<ir::Residency>{{plan.step.a(), ir::Space::kHost, 0},
                                        {plan.step.a(), ir::Space::kDevice, 0},
                                        {plan.step.a(), ir::Space::kDevice, 0}}));
  EXPECT_TRUE(timetable.boundary.empty()) << "an activation is not valid at the step boundary";
}

// `read` hides 1 us of the offload and `other` 6 us of the prefetch: 7 and 2 us are waited for.
TEST(TimetableWriter, AStallIsTheTimeThatComputeWaitsForACopy) {
  const tests::SmallProblem step(tests::workedStepWith(8, /*readTime=*/1, /*otherTime=*/6));
  const Timetable timetable = write(step.table, {kKeep, kHost, kKeep}, units(8));
  EXPECT_EQ(times(timetable), "n0 0-1, d2h 1-9, n1 1-2, n2 9-10, h2d 10-18, n3 10-16, n4 18-19");
  EXPECT_EQ(timetable.stalls.deviceToHost, Nanoseconds(us(7)));
  EXPECT_EQ(timetable.stalls.hostToDevice, Nanoseconds(us(2)));
  EXPECT_EQ(timetable.stepTime, Nanoseconds(us(10 + 7 + 2)));
  EXPECT_EQ(timetable.decisions.rows[0].why, "waits");
}

// The two copies of 2 units would take 4 us.
TEST(TimetableWriter, ARecomputeIsCheapIfItTakesNoLongerThanTwoCopies) {
  const auto why = [](int time, Allowed allowed) {
    const tests::SmallProblem step(
        {.items = {{Role::kActivation, 2}},
         .nodes = {{.op = "aten.mm.default", .time = time, .results = {0}},
                   {.op = "test.other.default"},
                   {.op = "test.read.default", .reads = {0}}}},
        allowed);
    return write(step.table, {kRecompute, kKeep}, units(2)).decisions.rows.at(0).why;
  };
  EXPECT_EQ(why(4, {}), "cheap");
  EXPECT_EQ(why(5, {}), "busy");
  EXPECT_EQ(why(1, {.offload = false}), "only");
}

// s0 is updated and stays, s1 is frozen and stays: the device alone has them. s2 is frozen and away
// between steps, s3 is an input: the host has them.
TEST(TimetableWriter, TheBoundarySaysWhereBytesAreValid) {
  const tests::SmallProblem step(
      {.items = {{Role::kParameter}, {Role::kFrozen}, {Role::kFrozen}, {Role::kInput}},
       .nodes = {{.op = "test.read.default", .reads = {1, 2, 3}},
                 {.op = "test.update.default", .reads = {0}, .updates = {0}},
                 {.op = "test.other.default"}}});
  const Timetable timetable = write(step.table, {kKeep, kKeep, kHost, kKeep}, units(4));
  ASSERT_EQ(timetable.boundary.size(), 4U);
  for (size_t storage = 0; storage < 4; ++storage) {
    const ir::BoundaryEntry& entry = timetable.boundary[storage];
    EXPECT_EQ(timetable.residencies[entry.at.front().index()].space,
              storage < 2 ? ir::Space::kDevice : ir::Space::kHost);
    EXPECT_EQ(entry.dirty, storage < 2) << "storage " << storage;
  }
}

}  // namespace
}  // namespace stowage::planner
