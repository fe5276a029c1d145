// SPDX-License-Identifier: Apache-2.0
//
// Steps and archives made to harm: each is changed in one place from one that runs, and is refused
// with exit code 3, the file and the line before anything is called. Nothing is written.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/support/program.h"
#include "tests/support/small_pt2.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;

class ForeignStep : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace("stowage_foreign_step");
    writeText(at("small.pt2"), packPt2(smallStepProgram().dump()));
    writeText(at("small.json"), smallStepSideFile());
    expectCode("capture " + at("small.pt2") + " -o " + at("small.stow"), 0);
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string at(const std::string& name) { return folder_->at(name); }

  static Outcome expectCode(const std::string& arguments, int code) {
    Outcome outcome = stowage(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << '\n' << outcome.text;
    return outcome;
  }

  /// The step with the first `what` replaced, and no checksum that says so.
  static std::string edited(const std::string& what, const std::string& with) {
    std::string text = readText(at("small.stow"));
    const size_t place = text.find(what);
    EXPECT_NE(place, std::string::npos) << what << "\nin\n" << text;
    if (place != std::string::npos) text.replace(place, what.size(), with);
    text.resize(text.rfind("// checksum"));
    writeText(at("edited.stow"), text);
    return at("edited.stow");
  }

  /// Every verb that reads a step refuses it, and names file and line.
  static void expectRefused(const std::string& step, const std::string& words) {
    for (const std::string& verb :
         {"plan " + step + " --budget 90%peak -f -o " + at("p.json"),
          "profile " + step + " -f -o " + at("c.json"), "sweep " + step}) {
      const Outcome outcome = expectCode(verb, 3);
      EXPECT_TRUE(outcome.says(step + ":")) << outcome.text;
      EXPECT_TRUE(outcome.says(words)) << outcome.text << "expected: " << words;
    }
    EXPECT_FALSE(fs::exists(at("p.json")));
    EXPECT_FALSE(fs::exists(at("c.json")));
  }

  static std::optional<ScratchFolder> folder_;
};
std::optional<ScratchFolder> ForeignStep::folder_;

TEST_F(ForeignStep, IsTakenAsItIs) {
  expectCode("profile " + edited("graph @small", "graph @other") + " -f -o " + at("costs.json"), 0);
}

TEST_F(ForeignStep, WithSmallerOptimizerStateIsRefused) {
  const std::string step = readText(at("small.stow"));
  const size_t state = step.find("state %");
  ASSERT_NE(state, std::string::npos) << step;
  const std::string line = step.substr(state, step.find('\n', state) - state);
  const std::string shorter = line.substr(0, line.rfind(" : ")) + " : f32[2]";
  expectRefused(edited(line, shorter), "found exp_avgs[0] of sizes [2]");
}

TEST_F(ForeignStep, WithAMarkerThatIsNotTheOpsIsRefused) {
  expectRefused(edited("aten.mm.default(%batch.0", "aten.mm.default(out %batch.0"),
                "the op does not write %batch.0");
}

TEST_F(ForeignStep, ThatCallsAnotherKindOfOpIsNeverRun) {
  const std::string written = at("written");
  const std::string text = readText(at("small.stow"));
  const size_t call = text.find("aten.mm.default(");
  const std::string whole = text.substr(call, text.find('\n', call) - call);
  const std::string step = edited(
      whole, "aten.from_file.default(\"" + written + "\", true, 8, dtype(f32), none, none, none)");
  const Outcome profile = expectCode("profile " + step + " -f -o " + at("c.json"), 3);
  EXPECT_TRUE(profile.says(step)) << profile.text;
  EXPECT_TRUE(profile.says("aten.from_file.default")) << profile.text;
  const std::string plan = at("from_file.json");
  if (stowage("plan " + step + " --budget 100%peak -f -o " + plan).code == 0) {
    EXPECT_TRUE(expectCode("run " + plan + " --random-weights", 3).says("from_file"));
  }
  EXPECT_FALSE(fs::exists(written));
}

TEST_F(ForeignStep, AsAnArchiveWithSmallerStateIsRefused) {
  nlohmann::json program = smallStepProgram();
  nlohmann::json& values = program["graph_module"]["graph"]["tensor_values"];
  ASSERT_TRUE(values.contains("a_1")) << values.dump(1);
  values["a_1"] = tensorMeta(7, {7}, {1});
  writeText(at("state.pt2"), packPt2(program.dump()));
  writeText(at("state.json"), smallStepSideFile());
  const Outcome outcome = expectCode("capture " + at("state.pt2") + " -f -o " + at("s.stow"), 3);
  EXPECT_TRUE(outcome.says("found exp_avgs[0] of sizes [7]")) << outcome.text;
  EXPECT_FALSE(fs::exists(at("s.stow")));
}

}  // namespace
}  // namespace stowage::tests
