// SPDX-License-Identifier: Apache-2.0
//
// Row blocks as the users of `stowage` meet them, from plan to run.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace stowage::tests {
namespace {

// Logits of 4 MiB, of which the whole loss holds three: 12 MiB at least.
TEST(RunRowBlocks, TrainsBelowWhatTheWholeLossHoldsAndEqualsTheUnplannedRun) {
  const ScratchFolder folder("stowage_row_blocks");
  const std::string step = folder.at("step.stow");
  const std::string plan = folder.at("plan.json");
  const std::string sizes = "--set hidden=64 --set vocabulary=4096 --set sequence=64 ";
  for (const std::string& model : {"llama " + sizes, "gpt2 --set layers=2 " + sizes}) {
    ASSERT_EQ(stowage("capture " + model + "-f -o " + step).code, 0);
    const std::string within = "plan " + step + " --budget 8MiB ";
    EXPECT_EQ(stowage(within + "--allow offload,recompute,in-place-reuse,reorder").code, 1);
    const Outcome planned = stowage(within + "-f -o " + plan);
    ASSERT_EQ(planned.code, 0) << planned.text;
    EXPECT_TRUE(planned.says("row blocks ")) << planned.text;
    EXPECT_EQ(stowage("verify " + plan).code, 0);
    const Outcome ran = stowage("run " + plan + " --steps 4 --compare-unplanned");
    EXPECT_TRUE(ran.code == 0 && ran.says("identical bits to the unplanned run")) << ran.text;
  }
  // Steps in row blocks have no times of the ops that they run in blocks.
  const std::string costs = folder.at("costs.json");
  const std::string timed = "run " + plan + " --steps 3 --costs-out " + folder.at("inside.json");
  const Outcome without = stowage(timed);
  EXPECT_EQ(without.code, 2) << without.text;
  EXPECT_TRUE(without.says("expected --costs too")) << without.text;
  ASSERT_EQ(stowage("profile " + step + " -o " + costs).code, 0);
  ASSERT_EQ(stowage(timed + " --costs " + costs).code, 0);
  const Outcome again = stowage("plan " + step + " --budget 60%peak --costs " +
                                folder.at("inside.json") + " -o " + folder.at("again.json"));
  EXPECT_EQ(again.code, 0) << again.text;
}

/// "(3.13 ms)" of the line that says how much longer than in unlimited memory a step takes.
std::string unlimitedIn(const std::string& text) {
  const size_t at = text.find("against unlimited memory (");
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? "" : text.substr(at, text.find(')', at) - at);
}

TEST(RunRowBlocks, LowerSaysWhatTheStepNeedsWithoutThem) {
  const ScratchFolder folder("stowage_lower_row_blocks");
  const std::string step = folder.at("step.stow");
  const std::string plan = folder.at("plan.json");
  const std::string sizes = "--set hidden=64 --set vocabulary=4096 --set sequence=64 ";
  ASSERT_EQ(stowage("capture llama " + sizes + "-o " + step).code, 0);
  ASSERT_EQ(stowage("profile " + step + " -o " + folder.at("costs.json")).code, 0);
  for (const std::string& costs : {std::string(), "--costs " + folder.at("costs.json")}) {
    const Outcome planned =
        stowage("plan " + step + " --budget 8MiB -fq --json -o " + plan + " " + costs);
    ASSERT_EQ(planned.code, 0) << planned.text;
    const Outcome lowered = stowage("lower " + plan + " -fq --json -o " + folder.at("low.json"));
    ASSERT_EQ(lowered.code, 0) << lowered.text;
    const nlohmann::json answer = nlohmann::json::parse(planned.text);
    EXPECT_GT(answer["unplanned_bytes"], 12 << 20);
    EXPECT_EQ(nlohmann::json::parse(lowered.text)["unplanned_bytes"], answer["unplanned_bytes"]);
    EXPECT_EQ(unlimitedIn(stowage("lower " + plan + " -fq -o " + folder.at("low.json")).text),
              unlimitedIn(stowage("plan " + step + " --budget 8MiB -q " + costs).text));
  }
}

}  // namespace
}  // namespace stowage::tests
