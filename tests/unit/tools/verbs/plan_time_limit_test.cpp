// SPDX-License-Identifier: Apache-2.0
//
// `plan --time-limit`: a search that is stopped has a plan that holds, and says that it was
// stopped.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace stowage::tests {
namespace {

using nlohmann::json;

TEST(PlanTimeLimit, StopsASearchWithAPlanThatIsVerified) {
  const ScratchFolder folder("stowage_time_limit");
  ASSERT_EQ(
      stowage("capture gpt2 --set layers=2 --set hidden=32 --set heads=2 --set sequence=16 -o " +
              folder.at("step.stow"))
          .code,
      0);
  const std::string plan = "plan " + folder.at("step.stow") + " --budget 50%peak ";
  const Outcome whole = stowage(plan + "-q --json");
  ASSERT_EQ(whole.code, 0) << whole.text;
  EXPECT_FALSE(json::parse(whole.text)["stopped_by_time_limit"]);

  const Outcome stopped =
      stowage(plan + "--time-limit 0.000001 -q --json -o " + folder.at("plan.json"));
  ASSERT_EQ(stopped.code, 0) << stopped.text;
  const json answer = json::parse(stopped.text);
  EXPECT_TRUE(answer["stopped_by_time_limit"]);
  EXPECT_GE(answer["predicted"]["step_ns"], json::parse(whole.text)["predicted"]["step_ns"]);
  EXPECT_LE(answer["predicted"]["peak_bytes"], answer["budget_bytes"]);
  EXPECT_EQ(stowage("verify " + folder.at("plan.json")).code, 0);
  const Outcome inWords = stowage(plan + "--time-limit 0.000001");
  EXPECT_TRUE(inWords.says("stopped    by --time-limit")) << inWords.text;
}

TEST(PlanTimeLimit, IsATimeAndNotForComparisons) {
  for (const char* arguments : {"--time-limit 0", "--time-limit -1", "--time-limit soon",
                                "--time-limit nan", "--time-limit 1 --compare"}) {
    const Outcome outcome = stowage(std::string("plan x.stow --budget 1MiB ") + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << '\n' << outcome.text;
    EXPECT_TRUE(outcome.says("--time-limit")) << arguments << '\n' << outcome.text;
  }
}

}  // namespace
}  // namespace stowage::tests
