// SPDX-License-Identifier: Apache-2.0
//
// Rows of `stowage-bench planner`: which plans reach their goal, and how they are written. The step
// takes 100 ms in unlimited memory.
#include "tools/bench/planner_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace stowage::tools {
namespace {

using namespace stowage::literals;

constexpr Nanoseconds kUnlimited(100'000'000);

PlannerRow rowOf(Nanoseconds stepTime, const Goal& goal) {
  return {.budget = 20_GiB,
          .goal = goal,
          .plan = BenchedPlan{.stepTime = stepTime,
                              .bound = Nanoseconds(104'000'000),
                              .moved = 3_GiB,
                              .rowBlocks = 16,
                              .order = "hoisted"},
          .cpuSeconds = 3.26,
          .wallSeconds = 1.75};
}

PlannerRow rowThatDoesNotFit(const Goal& goal) {
  return {.budget = 8_GiB, .percent = 35, .goal = goal, .plan = std::nullopt, .smallest = 9_GiB};
}

TEST(PlannerTable, GoalsAreComparedAsRatiosArePrinted) {
  const Goal goal = {.of = Goal::Of::kUnlimited, .most = 1.05};
  EXPECT_EQ(isGoalMet(rowOf(Nanoseconds(105'000'000), goal), kUnlimited), true);
  EXPECT_EQ(isGoalMet(rowOf(Nanoseconds(105'040'000), goal), kUnlimited), true);   // "1.050"
  EXPECT_EQ(isGoalMet(rowOf(Nanoseconds(105'060'000), goal), kUnlimited), false);  // "1.051"
}

TEST(PlannerTable, GoalsOfTheBoundAreComparedWithIt) {
  const Nanoseconds time(108'000'000);  // 1.038 x bound
  EXPECT_EQ(isGoalMet(rowOf(time, {.of = Goal::Of::kBound, .most = 1.04}), kUnlimited), true);
  EXPECT_EQ(isGoalMet(rowOf(time, {.of = Goal::Of::kBound, .most = 1.03}), kUnlimited), false);
}

TEST(PlannerTable, WhatDoesNotFitMeetsNoGoal) {
  EXPECT_EQ(isGoalMet(rowThatDoesNotFit({.of = Goal::Of::kFits}), kUnlimited), false);
  EXPECT_EQ(isGoalMet(rowThatDoesNotFit({.of = Goal::Of::kBound, .most = 9}), kUnlimited), false);
  EXPECT_EQ(isGoalMet(rowThatDoesNotFit({}), kUnlimited), std::nullopt);
  EXPECT_EQ(isGoalMet(rowOf(kUnlimited * 5, {.of = Goal::Of::kFits}), kUnlimited), true);
  EXPECT_EQ(isGoalMet(rowOf(kUnlimited * 5, {}), kUnlimited), std::nullopt);
}

TEST(PlannerTable, RowsAreMarkdown) {
  EXPECT_EQ(formatRow(rowOf(Nanoseconds(109'200'000), {.of = Goal::Of::kUnlimited, .most = 1.05}),
                      kUnlimited),
            "| 20.00 GiB | 109.2 | 1.092 | 1.050 | 3.00 | 16 | hoisted | 3.3 | 1.8 | 1.050 x "
            "unlimited | not met |\n");
  EXPECT_EQ(formatRow(rowThatDoesNotFit({}), kUnlimited),
            "| 8.00 GiB (35 %) | does not fit; smallest device budget that works: 9.00 GiB | - | - "
            "| - | - | - | 0.0 | 0.0 | - | - |\n");
}

TEST(PlannerTable, EveryLineOfATableHasTheSameColumns) {
  const auto countBars = [](const std::string& line) {
    return std::count(line.begin(), line.end(), '|');
  };
  const std::string head = formatHead({.name = "small", .recipe = "llama", .costs = "estimated"});
  const std::string lines = head.substr(head.find("| budget"));
  const auto bars = countBars(lines) / 2;
  EXPECT_EQ(countBars(lines.substr(0, lines.find('\n'))), bars);
  EXPECT_EQ(countBars(formatRow(rowOf(kUnlimited, {}), kUnlimited)), bars);
  EXPECT_EQ(countBars(formatRow(rowThatDoesNotFit({}), kUnlimited)), bars);
}

TEST(PlannerTable, JsonHoldsWhatARowSays) {
  const nlohmann::ordered_json fits =
      rowJson(rowOf(Nanoseconds(104'000'000), {.of = Goal::Of::kFits}), kUnlimited);
  EXPECT_EQ(fits["over_unlimited"], 1.04);
  EXPECT_EQ(fits["over_bound"], 1.0);
  EXPECT_EQ(fits["met"], true);
  const nlohmann::ordered_json lacks = rowJson(rowThatDoesNotFit({}), kUnlimited);
  EXPECT_EQ(lacks["smallest_budget_bytes"], (9_GiB).value());
  EXPECT_EQ(lacks["percent_of_peak"], 35);
  EXPECT_FALSE(lacks.contains("met"));
}

}  // namespace
}  // namespace stowage::tools
