// SPDX-License-Identifier: Apache-2.0
//
// The pictures that verbs draw: sweep --svg and explain --svg, as their users call them.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "tests/support/program.h"

namespace stowage::tests {
namespace {

class PictureVerbs : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace("stowage_pictures");
    ASSERT_NO_FATAL_FAILURE(planSmallModel(*folder_));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string at(const std::string& name) { return folder_->at(name); }
  static void expectRefused(const std::string& arguments, const std::string& words) {
    const Outcome outcome = stowage(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << '\n' << outcome.text;
    EXPECT_TRUE(outcome.says(words)) << arguments << '\n' << outcome.text << "expected: " << words;
  }
  static size_t countOf(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++count;
    return count;
  }

  static std::optional<ScratchFolder> folder_;
};
std::optional<ScratchFolder> PictureVerbs::folder_;

TEST_F(PictureVerbs, SweepDrawsStepTimeOverBudget) {
  const std::string sweep =
      "sweep " + at("step.stow") + " --budgets 60%peak,100%peak --svg " + at("sweep.svg");
  const Outcome outcome = stowage(sweep);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says("wrote      " + at("sweep.svg"))) << outcome.text;
  const std::string picture = readText(at("sweep.svg"));
  EXPECT_EQ(picture.find("<svg "), 0U);
  EXPECT_EQ(countOf(picture, "<circle "), 2U);
  expectRefused(sweep, "exists already; -f replaces it");
  expectRefused("sweep " + at("step.stow") + " --svg -", "--svg: found '-'");
}

TEST_F(PictureVerbs, ExplainDrawsMemoryOverTheStep) {
  const std::string explain = "explain " + at("plan.json") + " --svg " + at("memory.svg");
  const Outcome outcome = stowage(explain);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says("wrote      " + at("memory.svg"))) << outcome.text;
  const std::string picture = readText(at("memory.svg"));
  EXPECT_EQ(picture.find("<svg "), 0U);
  EXPECT_EQ(countOf(picture, ">everything kept: peak "), 1U);
  EXPECT_EQ(countOf(picture, ">planned: peak "), 1U);
  EXPECT_EQ(countOf(picture, "measured costs"), 1U);
  expectRefused(explain, "exists already; -f replaces it");
  expectRefused("explain " + at("plan.json") + " --svg -", "--svg: found '-'");
  expectRefused("explain " + at("plan.json") + " wte.weight --svg " + at("one.svg"),
                "--svg shows the whole plan");
  expectRefused("explain " + at("plan.json") + " -f --svg " + at("plan.json"), "plan.json");
}

// Bug: -f replaced the step or the costs that the plan was made from by the picture, also when the
// name of the picture was a link to them.
TEST_F(PictureVerbs, ExplainDrawsOverNoFileThatThePlanNames) {
  for (const std::string name : {"step.stow", "costs.json", "plan.json"}) {
    const std::string before = readText(at(name));
    ASSERT_FALSE(before.empty()) << name;
    const std::string link = at("link_to_" + name);
    std::filesystem::create_symlink(at(name), link);
    for (const std::string& picture : {at(name), link}) {
      expectRefused("explain " + at("plan.json") + " -f --svg " + picture, name);
      EXPECT_EQ(readText(at(name)), before) << picture;
      writeText(at(name), before);  // for the other tests
    }
    EXPECT_TRUE(std::filesystem::is_symlink(link)) << link;
    std::filesystem::remove(link);
  }
}

}  // namespace
}  // namespace stowage::tests
