// SPDX-License-Identifier: Apache-2.0
//
// Steps, costs and plans name the torch that they are of. Those of another one are refused where
// kernels would be measured or run, each with what to do.
#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "planner/targets/torch_libraries.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"

namespace stowage::tests {
namespace {

class OtherTorch : public testing::Test {
 protected:
  void SetUp() override {
    expectYes("capture gpt2 --set layers=1 -fq -o " + at("own.stow"));
    const std::string text = readText(at("own.stow"));
    const std::string key = "producer=\"torch ";
    const size_t begin = text.find(key);
    ASSERT_NE(begin, std::string::npos);
    own_ = text.substr(begin + key.size(), text.find('"', begin + key.size()) - begin - key.size());
    other_ = own_ == "2.11.0" ? "2.15.0" : "2.11.0";
  }
  /// The step as if another torch had captured it. Changed files go without their checksum.
  std::string stepOf(const std::string& torch) const {
    std::string text = readText(at("own.stow"));
    text.replace(text.find(own_), own_.size(), torch);
    text.resize(text.find("// checksum"));
    std::ofstream(at(torch + ".stow")) << text;
    return at(torch + ".stow");
  }
  static void expectYes(const std::string& arguments) {
    const Outcome outcome = stowage(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.text;
  }
  static void expectNo(const std::string& arguments, int code, const std::string& why) {
    const Outcome outcome = stowage(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.text;
    EXPECT_TRUE(outcome.says(why)) << outcome.text << "\nexpected: " << why;
  }
  std::string at(const std::string& name) const { return files_.at(name); }

  ScratchFolder files_{"stowage_other_torch"};
  std::string own_;
  std::string other_;
};

TEST_F(OtherTorch, ItsStepIsPlannedForItAndNotRunHere) {
  const std::string step = stepOf(other_);
  const Outcome planned = stowage("plan " + step + " --budget 100%peak -o " + at("plan.json"));
  EXPECT_EQ(planned.code, 0) << planned.text;
  EXPECT_TRUE(planned.says("its plan does not run with torch " + own_)) << planned.text;
  const Outcome run = stowage("run " + at("plan.json") + " --steps 1");
  EXPECT_EQ(run.code, 4) << run.text;
  EXPECT_TRUE(run.says("libraries: found torch " + own_ + ", the plan expects torch " + other_))
      << run.text;
  EXPECT_TRUE(run.says("capture, profile and plan the step again with these")) << run.text;
  expectNo("profile " + step + " -o " + at("costs.json"), 3,
           "captured with torch " + other_ + ", this is torch " + own_ + ": capture it again");
}

TEST_F(OtherTorch, AnOpThatOnlyItHasIsNamedWithIt) {
  std::string text = readText(stepOf(other_));
  const std::string op = "aten.gelu.default";
  ASSERT_NE(text.find(op), std::string::npos);
  text.replace(text.find(op), op.size(), "aten.gelu_of_then.default");
  std::ofstream(at("then.stow")) << text;
  expectNo("plan " + at("then.stow") + " --budget 1GiB -o " + at("plan.json"), 3,
           "captured with torch " + other_ + ", this is torch " + own_ + ": capture it again");
}

// A folder of LD_LIBRARY_PATH comes before the program's own.
TEST_F(OtherTorch, ItsLibrariesAreNotRunWith) {
  const std::string folder = STOWAGE_SOURCE_DIR "/build/deps/torch-" + other_ + "/torch/lib";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const Outcome outcome = stowage("--version", "LD_LIBRARY_PATH='" + folder + "' ");
  const bool isRefused =
      outcome.code == 4 &&
      outcome.says("the libtorch that was loaded is " + other_ + ", expected torch " + own_ +
                   ", which this was built with: see LD_LIBRARY_PATH");
  const bool isNotLoaded = outcome.code == 127 && outcome.says("symbol lookup error");
  EXPECT_TRUE(isRefused || isNotLoaded) << outcome.code << ": " << outcome.text;
}

TEST_F(OtherTorch, CostsOfOneAreNotForStepsOfTheOther) {
  expectYes("profile " + at("own.stow") + " -fq -o " + at("costs.json"));
  expectNo("plan " + stepOf(other_) + " --costs " + at("costs.json") + " --budget 1GiB -o " +
               at("plan.json"),
           3,
           "measured with torch " + own_ + ", the step was captured with torch " + other_ +
               ": capture the step again");
}

TEST_F(OtherTorch, KnownCostsOfItAreRefused) {
  const std::string step = stepOf(own_);
  expectYes("profile " + step + " -fq -o " + at("costs.json"));
  std::string text = readText(at("costs.json"));
  const size_t place = text.find("\"" + own_ + "\"");
  ASSERT_NE(place, std::string::npos) << text.substr(0, 400);
  text.replace(place + 1, own_.size(), other_);
  std::ofstream(at("known.json")) << text;
  expectNo("profile " + step + " --known " + at("known.json") + " -fq -o " + at("more.json"), 3,
           " by torch " + other_ + ", this is ");
}

TEST_F(OtherTorch, AnUnknownOneIsRefused) {
  const std::string step = stepOf("2.9.0");
  const std::string why = step + ": found torch '2.9.0', expected " + planner::supportedTorches();
  expectNo("plan " + step + " --budget 1GiB -o " + at("plan.json"), 3, why);
  expectNo("sweep " + step, 3, why);
}

}  // namespace
}  // namespace stowage::tests
