// SPDX-License-Identifier: Apache-2.0
//
// From decision rows to a timetable: the entry for callers with a plan.
#include "planner/evaluate/evaluate.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using enum ir::GapAction;
constexpr Bytes kUnlimited{INT64_MAX};

class EvaluateTest : public testing::Test {
 protected:
  /// A row for `a` in [1,4).
  ir::DecisionRow row(ir::GapAction action) const {
    return {.storage = step.a(), .gapBegin = 1, .gapEnd = 4, .action = action};
  }
  const tests::WorkedStep step;
};

// Five launches and two copies. The nodes take 1 + 10 + 1 + 8 + 1 us and wait for no copy.
TEST_F(EvaluateTest, OneRowMakesTheWorkedStepsTimetable) {
  const Timetable timetable =
      llvm::cantFail(evaluate(step.problem(), {{row(kHost)}}, step.budget()));
  EXPECT_EQ(timetable.actions.size(), 7U);
  EXPECT_EQ(timetable.devicePeak, step.budget());
  EXPECT_EQ(timetable.stepTime, step.us(21));
  ASSERT_EQ(timetable.decisions.rows.size(), 1U);
  EXPECT_EQ(timetable.decisions.rows[0].why, "hidden");

  const Timetable kept = llvm::cantFail(evaluate(step.problem(), {}, step.budget()));
  EXPECT_EQ(kept.actions.size(), 5U);
  EXPECT_EQ(kept.devicePeak, step.units(16)) << "the caller compares";
}

// With all the room it wants, the prefetch begins before `wide`, and the peak is 16 units. Within 8
// units the limit is lowered to the budget. The limit and the rows then give the same timetable.
TEST_F(EvaluateTest, PrefetchesAreHeldBackUntilThePeakFits) {
  const Decisions rows{{row(kHost)}};
  EXPECT_EQ(llvm::cantFail(evaluate(step.problem(), rows, kUnlimited)).devicePeak, step.units(16));
  const Timetable fits =
      llvm::cantFail(evaluateWithin(step.problem(), rows, step.budget(), kUnlimited));
  EXPECT_EQ(fits.devicePeak, step.budget());
  EXPECT_EQ(fits.prefetchLimit, step.budget());
  const Timetable again = llvm::cantFail(evaluate(step.problem(), rows, fits.prefetchLimit));
  EXPECT_EQ(again.residencies, fits.residencies);
  EXPECT_EQ(again.stepTime, fits.stepTime);
  // 7 units are not enough for anything: the lowest timetable is returned.
  EXPECT_EQ(
      llvm::cantFail(evaluateWithin(step.problem(), rows, step.units(7), kUnlimited)).devicePeak,
      step.units(8));
}

// A row to keep says nothing, so it goes, unless a person pinned it. Reasons are found anew.
TEST_F(EvaluateTest, PinnedRowsStayAndReasonsAreFoundAnew) {
  const auto rows = [&](ir::DecisionRow asked) {
    return llvm::cantFail(evaluate(step.problem(), {{std::move(asked)}}, step.budget()))
        .decisions.rows;
  };
  EXPECT_TRUE(rows(row(kKeep)).empty());
  ir::DecisionRow pinned = row(kKeep);
  pinned.pinned = true;
  ASSERT_EQ(rows(pinned).size(), 1U);
  EXPECT_EQ(rows(pinned)[0].why, "pinned");
  ir::DecisionRow edited = row(kHost);
  edited.why = "cheap";
  EXPECT_EQ(rows(edited)[0].why, "hidden");
}

TEST_F(EvaluateTest, RefusesWhatMayNotBeRecomputed) {
  ir::Expected<Timetable> refused =
      evaluateWithin(step.problem(), {{row(kRecompute)}}, step.budget(), kUnlimited);
  ASSERT_FALSE(static_cast<bool>(refused));
  EXPECT_EQ(ir::takePayload(refused.takeError()).code(), ir::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage::planner
