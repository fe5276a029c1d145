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
  ASSERT_EQ(byName.size(), 6U) << compared.text;
  EXPECT_FALSE(byName["keep-all"]["fits"]);
  EXPECT_GT(byName["keep-all"]["smallest_budget_bytes"], answer["budget_bytes"]);
  EXPECT_FALSE(byName["host-step-only"]["fits"]);
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
  EXPECT_FALSE(stowage(plan + "--policy keep-all").says("half the batch"));
  expectRefused("--policy stream-state", 2, "did you mean 'stream-states'");
  expectRefused("--policy keep-all --compare", 2, "excludes");
  expectRefused("--compare --allow offload", 2, "excludes");
  const Outcome lines = stowage(plan + "--compare");
  EXPECT_TRUE(lines.says("compare    keep-all       does not fit, needs ")) << lines.text;
  EXPECT_TRUE(lines.says("against the plan)")) << lines.text;
}

// Forward runs again in backward: more launches than a free choice of recomputes takes.
TEST(PlanPolicies, FullRecomputeRunsSegmentsAgain) {
  const ScratchFolder folder("stowage_full_recompute");
  const std::string step = folder.at("step.stow");
  ASSERT_EQ(stowage("capture gpt2 --set layers=4 --set hidden=32 --set heads=2 --set sequence=64 "
                    "--set context=64 --set vocabulary=64 --set batch=8 -o " +
                    step)
                .code,
            0);
  const std::string plan = "plan " + step + " -q --json --budget ";
  const Outcome full = stowage(plan + "90%peak --policy full-recompute");
  ASSERT_EQ(full.code, 0) << full.text;
  const json answer = json::parse(full.text);
  const json chosen = json::parse(stowage(plan + "90%peak --policy recompute-only").text);
  const auto launches = [](const json& of) {
    return of["counts"]["recomputed_launches"].get<int64_t>();
  };
  EXPECT_GT(launches(answer), launches(chosen));
  EXPECT_EQ(answer["counts"]["offloaded"], 0);
  EXPECT_GE(answer["predicted"]["step_ns"], chosen["predicted"]["step_ns"]);
  const Outcome small = stowage(plan + "5%peak --policy full-recompute");
  ASSERT_EQ(small.code, 1) << small.text;
  EXPECT_TRUE(small.says("smallest device budget that works")) << small.text;
}

// A refusal offers what was left out, each way asked of the planner.
TEST(PlanPolicies, ARefusalNamesTheCauseAndTheWaysOut) {
  const ScratchFolder folder("stowage_ways_out");
  ASSERT_NO_FATAL_FAILURE(planSmallModel(folder));
  const std::string plan = "plan " + folder.at("step.stow") + " -q --budget ";
  const Outcome none = stowage(plan + "80%peak --allow none");
  ASSERT_EQ(none.code, 1) << none.text;
  EXPECT_TRUE(none.says("; the most there: ")) << none.text;
  EXPECT_TRUE(none.says("  or allow offload: then it fits\n")) << none.text;
  EXPECT_TRUE(stowage(plan + "60%peak --policy keep-all").says("  or no --policy: then it fits\n"));
  const std::string text = stowage(plan + "80%peak --allow none --json").text;
  const json error = json::parse(text.substr(0, text.find("\n}\n") + 2));
  const json& why = error["error"]["infeasible"];
  EXPECT_GT(why["groups"][0]["count"], 0) << text;
  EXPECT_EQ(why["ways"][0]["change"], "allow offload") << text;
  EXPECT_EQ(why["ways"][0]["fits"], true) << text;
}

}  // namespace
}  // namespace stowage::tests
