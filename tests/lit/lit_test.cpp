// SPDX-License-Identifier: Apache-2.0
//
// One test per file below tests/lit: runs each case's pipeline on the case's own text and hands the
// output to FileCheck. The driver's own rules are tested on made-up files.

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "passes/pipeline_text.h"
#include "tests/support/lit_case.h"

namespace stowage::tests {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(STOWAGE_SOURCE_DIR) / "tests" / "lit";

std::vector<std::string> findLitFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    if (entry.path().extension() != ".stow") continue;
    files.push_back(std::filesystem::relative(entry.path(), kFolder).generic_string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string readFile(const std::string& file) {
  std::ifstream stream(kFolder / file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// "passes/hoist_updates.stow" -> "passes_hoist_updates"
std::string testName(const std::string& file) {
  std::string name = file.substr(0, file.rfind('.'));
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

void runCase(const LitCase& testCase, const std::string& file) {
  ir::Expected<std::string> output =
      passes::runPipelineOnText(testCase.pipeline, testCase.text, file);
  if (!output) {
    const std::string error = ir::describe(output.takeError());
    ASSERT_FALSE(testCase.expectedErrors.empty()) << error;
    for (const std::string& expected : testCase.expectedErrors) {
      EXPECT_NE(error.find(expected), std::string::npos)
          << "found: " << error << "\nexpected in it: " << expected;
    }
    return;
  }
  ASSERT_TRUE(testCase.expectedErrors.empty())
      << "expected an error with: " << testCase.expectedErrors.front() << "\nfound:\n"
      << *output;
  const CheckResult result =
      runFileCheck(testCase, *output, testName(file) + "_" + std::to_string(testCase.firstLine));
  EXPECT_TRUE(result.passed) << "pipeline: " << testCase.pipeline << "\n"
                             << result.message << "\noutput:\n"
                             << *output;
}

class Lit : public testing::TestWithParam<std::string> {};

TEST_P(Lit, Passes) {
  const LitFile file = parseLitFile(readFile(GetParam()));
  ASSERT_EQ(file.problems, std::vector<std::string>{});
  for (const LitCase& testCase : file.cases) {
    SCOPED_TRACE(GetParam() + ", case at line " + std::to_string(testCase.firstLine));
    runCase(testCase, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Lit, testing::ValuesIn(findLitFiles()),
                         [](const auto& info) { return testName(info.param); });

TEST(LitDriver, RefusesChecksThatCannotFail) {
  EXPECT_EQ(parseLitFile("// RUN: print\ngraph\n").problems,
            std::vector<std::string>{"case at line 1: checks nothing"});
  EXPECT_EQ(parseLitFile("// CHECK: a\n").problems,
            std::vector<std::string>{"case at line 1: no RUN line"});
  const std::vector<std::string> noColon = {"line 3: no such directive: // CHECK-NOT b"};
  EXPECT_EQ(parseLitFile("// RUN: print\n// CHECK: a\n// CHECK-NOT b\n").problems, noColon);
  const std::vector<std::string> unknown = {"line 3: no such directive: // CHECK-NXT: b"};
  EXPECT_EQ(parseLitFile("// RUN: print\n// CHECK: a\n// CHECK-NXT: b\n").problems, unknown);
}

TEST(LitDriver, SeparatesCases) {
  const LitFile file =
      parseLitFile("// RUN: a\n// CHECK: x\n// -----\n// RUN: b\n// EXPECT-ERROR: y\n");
  EXPECT_EQ(file.problems, std::vector<std::string>{});
  ASSERT_EQ(file.cases.size(), 2U);
  EXPECT_EQ(file.cases[1].firstLine, 4);
  EXPECT_EQ(file.cases[1].pipeline, "b");
  EXPECT_EQ(file.cases[1].expectedErrors, std::vector<std::string>{"y"});
}

TEST(LitDriver, TellsWhenFileCheckFails) {
  const LitCase testCase{.pipeline = "print", .text = "// CHECK: one\n", .expectedErrors = {}};
  EXPECT_TRUE(runFileCheck(testCase, "one\n", "driver").passed);
  const CheckResult result = runFileCheck(testCase, "two\n", "driver");
  EXPECT_FALSE(result.passed);
  EXPECT_NE(result.message.find("expected string not found"), std::string::npos);
}

}  // namespace
}  // namespace stowage::tests
