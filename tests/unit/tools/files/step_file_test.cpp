// SPDX-License-Identifier: Apache-2.0
//
// A captured step's file tells when it was changed, by a letter that no other rule knows, too.
#include "tools/files/step_file.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"
#include "tests/support/or_fail.h"

namespace stowage::tests {
namespace {

constexpr const char* kStep = R"ir(
graph @g version=1 device="cpu" target="cpu" recipe="" producer="" steps=2 {
  parameter %w "fc.weight" : f32[3]
optimizer "":
  aten.mul_.Scalar(inout %w, 2)
}
)ir";

std::string writtenStep() {
  const ir::Graph graph = orFail(ir::parseGraph(kStep));
  std::string text;
  llvm::raw_string_ostream os(text);
  tools::writeStepFile(graph, os);
  return os.str();
}

std::string checked(const std::string& text) {
  return ir::describe(tools::checkStepText(text, "step.stow"));
}

TEST(StepFile, ReadsAsItWasWritten) {
  const std::string text = writtenStep();
  EXPECT_EQ(checked(text), "");
  EXPECT_TRUE(static_cast<bool>(ir::parseGraph(text)));
}

TEST(StepFile, EveryChangedByteShows) {
  const std::string text = writtenStep();
  const size_t end = text.rfind("//");
  for (size_t i = 0; i < end; ++i) {
    std::string changed = text;
    changed[i] ^= 1;
    EXPECT_NE(checked(changed), "") << i;
  }
}

TEST(StepFile, SaysWhereAndWhatToDo) {
  std::string text = writtenStep();
  text.replace(text.find("fc.weight"), 2, "fd");
  const std::string error = checked(text);
  EXPECT_NE(error.find("step.stow:"), std::string::npos) << error;
  EXPECT_NE(error.find("accepted without this line"), std::string::npos) << error;
}

TEST(StepFile, TextByHandHasNoChecksum) { EXPECT_EQ(checked(kStep), ""); }

}  // namespace
}  // namespace stowage::tests
