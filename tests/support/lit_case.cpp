// SPDX-License-Identifier: Apache-2.0
#include "tests/support/lit_case.h"

#include <checkout_folders.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace stowage::tests {

namespace {

const std::string kRun = "// RUN: ";
const std::string kError = "// EXPECT-ERROR: ";

/// A comment that FileCheck takes for a check.
bool isCheck(const std::string& line) {
  static const std::regex kCheck(
      R"(^\s*// CHECK(-(NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-[0-9]+))?:.*)");
  return std::regex_match(line, kCheck);
}

/// A comment that somebody may have meant as one.
bool looksLikeDirective(const std::string& line) {
  static const std::regex kAlike(R"(^\s*//\s*(CHECK|RUN|EXPECT)[A-Z0-9-]*.*)");
  return std::regex_match(line, kAlike);
}

void checkCase(const LitCase& testCase, bool hasCheck, std::vector<std::string>& problems) {
  const std::string place = "case at line " + std::to_string(testCase.firstLine) + ": ";
  if (testCase.pipeline.empty()) problems.push_back(place + "no RUN line");
  if (!hasCheck && testCase.expectedErrors.empty()) problems.push_back(place + "checks nothing");
  if (hasCheck && !testCase.expectedErrors.empty()) {
    problems.push_back(place + "has both checks and an expected error");
  }
}

std::string readFile(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

LitFile parseLitFile(const std::string& text) {
  LitFile file;
  LitCase current;
  bool hasCheck = false;
  int number = 0;
  std::istringstream lines(text);
  const auto finishCase = [&] {
    checkCase(current, hasCheck, file.problems);
    file.cases.push_back(current);
    // Empty lines in front, so that messages give the file's line numbers.
    current = LitCase{.firstLine = number + 1,
                      .pipeline = "",
                      .text = std::string(static_cast<size_t>(number), '\n'),
                      .expectedErrors = {}};
    hasCheck = false;
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line == "// -----") {
      finishCase();
      continue;
    }
    current.text += line + "\n";
    if (line.starts_with(kRun)) {
      current.pipeline = line.substr(kRun.size());
    } else if (line.starts_with(kError)) {
      current.expectedErrors.push_back(line.substr(kError.size()));
    } else if (isCheck(line)) {
      hasCheck = true;
    } else if (looksLikeDirective(line)) {
      file.problems.push_back("line " + std::to_string(number) + ": no such directive: " + line);
    }
  }
  finishCase();
  return file;
}

CheckResult runFileCheck(const LitCase& testCase, const std::string& output,
                         const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(STOWAGE_BINARY_DIR) / "tests" / "lit";
  std::filesystem::create_directories(folder);
  const std::string stem = (folder / (name + "." + std::to_string(getpid()))).string();
  std::ofstream(stem + ".checks") << testCase.text;
  std::ofstream(stem + ".output") << output;
  const std::string command = std::string(STOWAGE_FILECHECK) + " '" + stem +
                              ".checks' --input-file='" + stem + ".output' --allow-empty >'" +
                              stem + ".result' 2>&1";
  const bool passed = std::system(command.c_str()) == 0;
  CheckResult result{passed, passed ? "" : readFile(stem + ".result")};
  for (const char* suffix : {".checks", ".output", ".result"}) {
    std::filesystem::remove(stem + suffix);
  }
  return result;
}

}  // namespace stowage::tests
