// SPDX-License-Identifier: Apache-2.0
//
// `fit` as its users call it: the largest size that fits, as `capture` and `plan` find it too.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace stowage::tests {
namespace {

using nlohmann::json;

constexpr const char* kModel =
    "gpt2 --set layers=1 --set hidden=32 --set heads=2 --set context=64 --set sequence=16 ";

class FitVerb : public testing::Test {
 protected:
  FitVerb() : folder_("stowage_fit") {}
  static json answerOf(const std::string& arguments, int code = 0) {
    const Outcome outcome = stowage("fit -q --json " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments << '\n' << outcome.text;
    return json::parse(outcome.text);
  }
  static void expectRefused(const std::string& arguments, const std::string& words) {
    const Outcome outcome = stowage("fit " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << '\n' << outcome.text;
    EXPECT_TRUE(outcome.says(words)) << arguments << '\n' << outcome.text << "expected: " << words;
  }
  /// The answer of `plan` for a batch.
  json planAt(int64_t batch, int64_t budget) {
    const std::string step = folder_.at("step.stow");
    const Outcome captured = stowage("capture " + std::string(kModel) +
                                     "-f --set batch=" + std::to_string(batch) + " -o " + step);
    EXPECT_EQ(captured.code, 0) << captured.text;
    return json::parse(stowage("plan -q --json " + step + " --budget " + std::to_string(budget) +
                               "B 2>/dev/null #")
                           .text);
  }

  ScratchFolder folder_;
};

TEST_F(FitVerb, FindsWhatCaptureAndPlanFind) {
  const json answer = answerOf(std::string(kModel) + "--budget 700KiB");
  const int64_t largest = answer["largest"];
  ASSERT_GT(largest, 1) << answer;
  const int64_t budget = answer["budget_bytes"];
  EXPECT_EQ(budget, 700 * 1024);
  EXPECT_EQ(answer["rows"].back()["size"], largest);
  for (const json& row : answer["rows"]) {
    const json plan = planAt(row["size"], budget);
    EXPECT_EQ(row["peak_bytes"], plan["predicted"]["peak_bytes"]) << row;
    EXPECT_EQ(row["step_ns"], plan["predicted"]["step_ns"]) << row;
    EXPECT_EQ(row["tokens"], row["size"].get<int64_t>() * 16) << row;
  }
  EXPECT_EQ(planAt(largest + 1, budget)["error"]["infeasible"]["smallest_budget_bytes"],
            answer["next_budget_bytes"]);
  ASSERT_EQ(answer["larger"].size(), 2U);
  for (const json& row : answer["larger"]) {
    EXPECT_TRUE(planAt(row["size"], row["budget_bytes"]).value("fits", false)) << row;
    EXPECT_FALSE(planAt(row["size"].get<int64_t>() + 1, row["budget_bytes"]).contains("fits"));
  }
  EXPECT_EQ(answer["larger"][0]["budget_bytes"], 875 * 1024);
  EXPECT_EQ(answer["larger"][1]["budget_bytes"], 1050 * 1024);
}

TEST_F(FitVerb, PrintsATableAndTheAnswer) {
  const Outcome outcome = stowage("fit " + std::string(kModel) + "--budget 2MiB --most 2");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  for (const char* words :
       {"      budget         batch          peak          step     per token\n", "2.50 MiB",
        "3.00 MiB", "largest batch that fits in 2.00 MiB: 2, the most that was tried\n",
        "estimates from the profile cpu, not measured: the error is not known"}) {
    EXPECT_TRUE(outcome.says(words)) << outcome.text << "expected: " << words;
  }
  const Outcome nothing = stowage("fit " + std::string(kModel) + "--budget 1KiB");
  EXPECT_EQ(nothing.code, 1) << nothing.text;
  EXPECT_TRUE(nothing.says("nothing fits in 1.00 KiB\n1 would take ")) << nothing.text;
}

TEST_F(FitVerb, ForGpusThatAreNotHere) {
  const json answer =
      answerOf(std::string(kModel) + "--budget device:900MiB --target h200 " + "--most 2");
  EXPECT_EQ(answer["target"], "h200");
  EXPECT_EQ(answer["budget_bytes"], 900 << 20);
  EXPECT_GT(answer["outside_bytes"].get<int64_t>(), 0);
  EXPECT_EQ(answer["largest"], 2);
}

// Batch norm needs two images.
TEST_F(FitVerb, BeginsAtTheSmallestSizeOfTheModel) {
  const json answer = answerOf("resnet --set layers=14 --budget 1GiB --most 2");
  EXPECT_EQ(answer["unit"], "example");
  ASSERT_EQ(answer["rows"].size(), 1U);
  EXPECT_EQ(answer["rows"][0]["size"], 2);
  EXPECT_EQ(answer["rows"][0]["tokens"], 2);
  expectRefused("resnet --budget 1GiB --most 1", "expected at least 2");
}

TEST_F(FitVerb, TriesMultiplesOfTheMicroBatches) {
  const std::string parts = std::string(kModel) + "--set micro_batches=3 --budget 600KiB --most 20";
  const json answer = answerOf(parts);
  EXPECT_GT(answer["largest"].get<int64_t>(), 0);
  for (const json& row : answer["rows"]) EXPECT_EQ(row["size"].get<int64_t>() % 3, 0) << row;
  EXPECT_EQ(answerOf(parts + " --multiple-of 6")["rows"][0]["size"], 6);
}

TEST_F(FitVerb, LimitsOfTheHostAreSaid) {
  const json answer = answerOf(std::string(kModel) + "--budget 400KiB --host 1B", 1);
  EXPECT_TRUE(answer.contains("next_host_bytes") || answer.contains("next_budget_bytes")) << answer;
}

TEST_F(FitVerb, ADiskTakesWhatTheHostHasNoRoomFor) {
  const std::string one = std::string(kModel) + "--budget 300KiB --most 1 ";
  const json lack = answerOf(one + "--host 1B", 1);
  if (!lack.contains("next_host_bytes")) GTEST_SKIP() << "an op takes more than the budget here";
  const int64_t host = lack["next_host_bytes"].get<int64_t>() - 1;
  const std::string scarce = one + "--host " + std::to_string(host) + "B ";
  EXPECT_EQ(answerOf(scarce, 1)["largest"], 0);
  EXPECT_EQ(answerOf(scarce + "--disk 1GiB")["largest"], 1);
}

TEST_F(FitVerb, RefusesWhatItCannotVary) {
  const std::string model = kModel;
  expectRefused(model + "--budget 1MiB --set batch=4", "--vary batch sets that one");
  expectRefused(model + "--budget 50%peak", "which grows with the batch");
  expectRefused(model + "--budget 50%", "whose memory belongs to no device");
  expectRefused(model + "--budget 1MiB --disk 50%", "--disk");
  expectRefused("gpt2 --vary sequence --budget 1GiB", "--most limits the sizes");
  expectRefused(model + "--budget 1MiB --set micro_batches=3 --multiple-of 4", "multiple");
  expectRefused("vit --vary sequence --budget 1GiB", "sequence");
  expectRefused("gpt3 --budget 1GiB", "did you mean 'gpt2'");
}

}  // namespace
}  // namespace stowage::tests
