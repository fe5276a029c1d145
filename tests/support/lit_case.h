// SPDX-License-Identifier: Apache-2.0
//
// Text test files: cases that begin with "// RUN: pipeline" and are separated by "// -----". A case
// holds FileCheck lines for what the pipeline prints, or "// EXPECT-ERROR: text" for what the error
// says. A file whose checks could not fail (no check in a case, a prefix that FileCheck would
// ignore, a colon that is missing) is refused.
#ifndef STOWAGE_TESTS_SUPPORT_LIT_CASE_H_
#define STOWAGE_TESTS_SUPPORT_LIT_CASE_H_

#include <string>
#include <vector>

namespace stowage::tests {

struct LitCase {
  int firstLine = 1;
  std::string pipeline;
  std::string text;                         // the whole case, checks included
  std::vector<std::string> expectedErrors;  // none: the pipeline must succeed
};

struct LitFile {
  std::vector<LitCase> cases;
  std::vector<std::string> problems;  // "line 7: ..."
};

LitFile parseLitFile(const std::string& text);

struct CheckResult {
  bool passed = false;
  std::string message;  // what FileCheck said
};

/// Runs FileCheck with the checks of `testCase` on `output`. `name` makes the scratch files' names.
CheckResult runFileCheck(const LitCase& testCase, const std::string& output,
                         const std::string& name);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_LIT_CASE_H_
