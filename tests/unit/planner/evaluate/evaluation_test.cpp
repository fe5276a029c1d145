// SPDX-License-Identifier: Apache-2.0
//
// Evaluation in two parts, the limit of the next attempt, and rows as an action per gap.
#include "planner/evaluate/evaluation.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using tests::units;
using tests::us;
using enum ir::GapAction;

TEST(Evaluation, ADraftKnowsTimeAndLeastPeakBeforeAddresses) {
  const tests::WorkedPlan plan;
  Draft draft = llvm::cantFail(draftTimetable(plan.table, plan.actions, units(8)));
  EXPECT_EQ(draft.simulatedTime(), us(21));
  EXPECT_EQ(draft.device.leastPeak, units(8));
  EXPECT_EQ(draft.order.period, 18);
  const Timetable timetable = finishTimetable(plan.table, plan.actions, units(8), std::move(draft));
  EXPECT_EQ(timetable.devicePeak, Bytes(units(8)));
  EXPECT_EQ(timetable.prefetchLimit, Bytes(units(8)));
  // What stays needs no simulation.
  draft = llvm::cantFail(draftTimetable(plan.table, {kKeep, kKeep, kKeep}, units(8)));
  EXPECT_EQ(draft.simulatedTime(), 0);
  EXPECT_EQ(draft.device.leastPeak, units(16));
}

// Reserved bytes are inside the limit: with one unit reserved, a limit of 16 units is one of 15, so
// the prefetch waits until `wide` ends, and 16 + 1 units let it begin before.
TEST(Evaluation, TheLimitIncludesReservedBytes) {
  ir::Target target = tests::smallTarget();
  target.reserved = {{.what = "cublas", .bytes = Bytes(units(1))}};
  const tests::SmallProblem step(tests::workedStepWith(8), {}, target);
  const auto peak = [&](int64_t limit) {
    return llvm::cantFail(evaluateActions(step.table, {kKeep, kHost, kKeep}, limit)).devicePeak;
  };
  EXPECT_EQ(peak(units(16)), Bytes(units(1 + 8)));
  EXPECT_EQ(peak(units(17)), Bytes(units(1 + 16)));
}

// A 32nd of 64 is 2.
TEST(Evaluation, TheNextLimitIsLowerByTheExcessOrByAPartOfTheBudget) {
  EXPECT_EQ(lowerPrefetchLimit(/*limit=*/100, /*budget=*/64, /*peak=*/90), 64);
  EXPECT_EQ(lowerPrefetchLimit(/*limit=*/64, /*budget=*/64, /*peak=*/80), 64 - 16);
  EXPECT_EQ(lowerPrefetchLimit(/*limit=*/64, /*budget=*/64, /*peak=*/65), 64 - 3);
}

TEST(Evaluation, ARowMustNameAGap) {
  const tests::WorkedPlan plan;
  const auto refusal = [&](ir::DecisionRow row) {
    ir::Expected<Actions> actions = actionsOf(plan.table, {{std::move(row)}});
    EXPECT_FALSE(static_cast<bool>(actions));
    return ir::describe(actions.takeError());
  };
  const ir::StorageId a = plan.step.a();
  EXPECT_EQ(llvm::cantFail(actionsOf(
                plan.table, {{{.storage = a, .gapBegin = 1, .gapEnd = 4, .action = kHost}}})),
            plan.actions);
  EXPECT_EQ(refusal({.storage = a, .gapBegin = 1, .gapEnd = 3, .action = kHost}),
            "storage 's0': found a decision for [1, 3), which is none of its gaps");
  EXPECT_NE(refusal({.storage = ir::StorageId(1), .gapBegin = 1, .gapEnd = 4}), "");
}

}  // namespace
}  // namespace stowage::planner
