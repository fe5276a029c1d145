// SPDX-License-Identifier: Apache-2.0
//
// What a plan's summary counts, of schedules that are nothing but decisions, and what it says
// first.
#include "planner/report/plan_summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/small_step.h"

namespace stowage::planner {
namespace {

using ir::Role;

/// Parameter 0 stays, states 1 and 2 leave, activation 3 is no state.
TEST(PlanSummary, CountsTheStateThatNeverLeaves) {
  const ir::Graph graph = tests::toGraph({.items = {{Role::kParameter, 3},
                                                    {Role::kState, 4},
                                                    {Role::kState, 5},
                                                    {Role::kActivation, 6}},
                                          .nodes = {}});
  ir::Schedule schedule;
  EXPECT_EQ(countPlan(graph, schedule).resident, Bytes(12 * tests::kUnitBytes));
  schedule.decisions = {{.storage = ir::StorageId(0), .action = ir::GapAction::kKeep},
                        {.storage = ir::StorageId(1), .action = ir::GapAction::kHost},
                        {.storage = ir::StorageId(2), .action = ir::GapAction::kDisk},
                        {.storage = ir::StorageId(3), .action = ir::GapAction::kHost}};
  const PlanCounts counts = countPlan(graph, schedule);
  EXPECT_EQ(counts.resident, Bytes(3 * tests::kUnitBytes));
  EXPECT_EQ(counts.offloadedStates, 1);
  EXPECT_EQ(counts.offloadedActivations, 1);
  EXPECT_EQ(counts.toDisk, 1);
}

// In row blocks a step computes longer than as captured.
TEST(PlanSummary, ComparesWithTheStepAsCaptured) {
  const ir::Graph graph = tests::toGraph({.items = {{Role::kParameter, 3}}, .nodes = {}});
  ir::Schedule schedule;
  schedule.predicted.computeTime = Nanoseconds(11'000'000);
  schedule.predicted.stepTime = Nanoseconds(12'000'000);
  PlanSummary summary = {.graph = graph, .schedule = schedule};
  const auto text = [&] {
    std::string text;
    llvm::raw_string_ostream os(text);
    printPlanSummary(summary, os);
    return os.str();
  };
  EXPECT_NE(text().find("+9.1 % against unlimited memory (11.00 ms)"), std::string::npos) << text();
  summary.unlimited = Nanoseconds(10'000'000);
  EXPECT_NE(text().find("+20.0 % against unlimited memory (10.00 ms)"), std::string::npos)
      << text();
}

TEST(PlanSummary, SaysFirstThatTimesAreEstimatesAndHowFarOff) {
  const ir::Graph graph = tests::toGraph({.items = {{Role::kParameter, 3}}, .nodes = {}});
  const ir::Schedule schedule;
  for (const bool planNeeded : {false, true}) {
    PlanSummary summary = {.graph = graph, .schedule = schedule, .planNeeded = planNeeded};
    summary.costs = {.source = ir::CostSource::kRoofline,
                     .estimate = "from the profile h200, not measured: +-10 % of the step's time",
                     .errorPercent = 10};
    std::string text;
    llvm::raw_string_ostream os(text);
    printPlanSummary(summary, os);
    EXPECT_EQ(os.str().rfind("estimated  from the profile h200, not measured: +-10 %", 0), 0U);
    const nlohmann::ordered_json estimated = planSummaryJson(summary);
    EXPECT_EQ(estimated.begin().key(), "estimated");
    EXPECT_EQ(estimated["costs"]["error_percent"], 10);
    summary.costs.source = ir::CostSource::kMeasured;
    text.clear();
    printPlanSummary(summary, os);
    EXPECT_EQ(os.str().find("estimated"), std::string::npos);
    const nlohmann::ordered_json measured = planSummaryJson(summary);
    EXPECT_EQ(measured.begin().key(), "fits");
    EXPECT_FALSE(measured["costs"].contains("error_percent"));
  }
}

}  // namespace
}  // namespace stowage::planner
