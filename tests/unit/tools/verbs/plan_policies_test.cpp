// SPDX-License-Identifier: Apache-2.0
//
// `plan --policy` and `plan --compare`: what one rule for all tensors gives at the same budget.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace stowage::tests {
namespace {

using nlohmann::json;

TEST(PlanPolicies, AreComparedWithThePlanAndPlannedBy) {
  const ScratchFolder folder("stowage_policies");
  ASSERT_NO_FATAL_FAILURE(planSmallModel(folder));
  const std::string plan = "plan " + folder.at("step.stow") + " --costs " +
                           folder.at("costs.json") + " --budget 60%peak ";
  const auto expectRefused = [&](const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = stowage(plan + arguments);
    EXPECT_EQ(outcome.code, code) << arguments << '\n' << outcome.text;
    EXPECT_TRUE(outcome.says(words)) << arguments << '\n' << outcome.text;
  };
  const Outcome compared = stowage(plan + "--compare -q --json");
  ASSERT_EQ(compared.code, 0) << compared.text;
  const json answer = json::parse(compared.text);
  std::map<std::string, json> byName;
  for (const json& policy : answer["policies"]) byName[policy["policy"]] = policy;
  ASSERT_EQ(byName.size(), 4U) << compared.text;
  EXPECT_FALSE(byName["keep-all"]["fits"]);
  EXPECT_GT(byName["keep-all"]["smallest_budget_bytes"], answer["budget_bytes"]);
  for (const char* name : {"offload-only", "stream-states"}) {
    ASSERT_TRUE(byName[name]["fits"]) << name;
    EXPECT_GE(byName[name]["step_ns"], answer["predicted"]["compute_ns"]) << name;
    const Outcome alone = stowage(plan + "-q --json --policy " + name);
    ASSERT_EQ(alone.code, 0) << alone.text;
    EXPECT_EQ(json::parse(alone.text)["predicted"]["step_ns"], byName[name]["step_ns"]) << name;
  }
  const json offload = json::parse(stowage(plan + "-q --json --policy offload-only").text);
  EXPECT_EQ(offload["counts"]["recomputed_launches"], 0);
  expectRefused("--policy keep-all", 1, "smallest device budget that works");
  expectRefused("--policy stream-state", 2, "did you mean 'stream-states'");
  expectRefused("--policy keep-all --compare", 2, "excludes");
  expectRefused("--compare --allow offload", 2, "excludes");
  const Outcome lines = stowage(plan + "--compare");
  EXPECT_TRUE(lines.says("compare    keep-all       does not fit, needs ")) << lines.text;
  EXPECT_TRUE(lines.says("against the plan)")) << lines.text;
}

}  // namespace
}  // namespace stowage::tests
