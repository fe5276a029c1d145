// SPDX-License-Identifier: Apache-2.0
//
// Which costs a plan was made from: the table where the plan says that it is, or the estimate of
// its profile, and only with the fingerprint that the plan states.
#include "planner/verdict/plan_costs.h"

#include <gtest/gtest.h>

#include "planner/targets/roofline.h"
#include "tests/support/or_fail.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using tests::orFail;

PlanFile makePlan(const tests::SmallProblem& step, const ir::CostTable& costs) {
  PlanFile plan;
  plan.path = "plans/step.json";
  plan.target = step.target;
  plan.costs = {.fingerprint = costsFingerprint(costs), .source = costs.source};
  return plan;
}

/// With one file, plans/costs.json, that holds `table`.
PlansCosts find(const PlanFile& plan, const tests::SmallProblem& step, const ir::CostTable& table) {
  const auto load = [&](const std::string& path) -> ir::Expected<std::optional<CostFile>> {
    if (path != "plans/costs.json") return std::optional<CostFile>();
    return std::optional(CostFile{.table = table});
  };
  return orFail(findPlansCosts(plan, step.graph, load));
}

// The plan names costs.json, which lies beside it. The same table with one time changed is not
// what the plan was made from.
TEST(PlanCosts, TheTableOfTheWorkedStepCountsOnlyWithItsFingerprint) {
  const tests::SmallProblem step(tests::workedStepWith(8));
  ir::CostTable table = tests::costTable(step);
  PlanFile plan = makePlan(step, table);
  plan.costs.file = "costs.json";
  const PlansCosts found = find(plan, step, table);
  ASSERT_TRUE(found.file);
  EXPECT_EQ(found.path, "plans/costs.json");
  EXPECT_EQ(found.missing, "");
  EXPECT_EQ(found.file->table.bySignature.size(), 5U);

  table.bySignature.begin()->second.work += Nanoseconds(1);
  const PlansCosts changed = find(plan, step, table);
  EXPECT_FALSE(changed.file);
  EXPECT_EQ(changed.missing, "with fingerprint " + plan.costs.fingerprint +
                                 ", and plans/costs.json has " + costsFingerprint(table));
}

TEST(PlanCosts, ATableThatIsNotThereIsMissingAndNoError) {
  const tests::SmallProblem step(tests::workedStepWith(8));
  const ir::CostTable table = tests::costTable(step);
  PlanFile plan = makePlan(step, table);
  plan.costs.file = "other.json";
  EXPECT_EQ(find(plan, step, table).missing, "and there is no plans/other.json");
  plan.costs.file = "";
  EXPECT_EQ(find(plan, step, table).missing, "and does not say where they are");
}

TEST(PlanCosts, TheEstimateOfAProfileIsComputedAgain) {
  const tests::SmallProblem step(tests::workedStepWith(8));
  PlanFile plan = makePlan(step, rooflineCosts(step.graph, step.target));
  const PlansCosts found = find(plan, step, {});
  ASSERT_TRUE(found.file);
  EXPECT_EQ(found.path, "");
  plan.target.kernelOverhead += Nanoseconds(1);
  const PlansCosts other = find(plan, step, {});
  EXPECT_FALSE(other.file);
  EXPECT_NE(other.missing.find("and the estimate of profile 'units' has "), std::string::npos);
}

TEST(PlanCosts, AFileIsSeenFromTheFolderOfThePlan) {
  EXPECT_EQ(seenFrom("plans/step.json", "costs.json"), "plans/costs.json");
  EXPECT_EQ(seenFrom("step.json", "costs.json"), "costs.json");
  EXPECT_EQ(seenFrom("plans/step.json", "/costs.json"), "/costs.json");
}

}  // namespace
}  // namespace stowage::planner
