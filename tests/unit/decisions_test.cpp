// SPDX-License-Identifier: Apache-2.0
//
// Every DECISIONS.md has one form: a heading per decision, then context, choice, rejected and when
// to revisit it, each with its text, in at most ten lines. A table may follow.

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <string>
#include <vector>

#include "tests/support/source_files.h"

namespace stowage::tests {
namespace {

constexpr size_t kMostLines = 10;
const std::vector<std::string> kParts = {"- **Context:** ", "- **Choice:** ", "- **Rejected:** ",
                                         "- **Revisit when:** "};

/// Whether `line` begins `part` and has a word of its text.
bool beginsPart(const std::string& line, const std::string& part) {
  return line.starts_with(part) && line.find_first_not_of(" \t", part.size()) != std::string::npos;
}

/// What is wrong with the decisions of `source`, each with its heading.
std::vector<std::string> findFaults(const SourceFile& source) {
  std::vector<std::string> faults;
  std::string heading;
  size_t parts = 0;
  size_t lines = 0;
  const auto close = [&] {
    if (heading.empty()) return;
    if (parts != kParts.size()) {
      std::string wanted = kParts[parts];
      faults.push_back(source.path + ": '" + heading + "' lacks " + wanted);
    }
    if (lines > kMostLines) {
      faults.push_back(source.path + ": '" + heading + "' has " + std::to_string(lines) + " lines");
    }
  };
  for (const std::string& line : source.lines) {
    if (line.starts_with("## ")) {
      close();
      heading = line.substr(3);
      parts = 0;
      lines = 0;
      continue;
    }
    if (heading.empty() || line.empty() || line.starts_with("|")) continue;
    ++lines;
    if (parts < kParts.size() && beginsPart(line, kParts[parts])) ++parts;
  }
  close();
  return faults;
}

TEST(Decisions, HaveOneForm) {
  int files = 0;
  for (const SourceFile& source : readSources(STOWAGE_SOURCE_DIR, {".md"})) {
    if (!source.path.ends_with("DECISIONS.md")) continue;
    ++files;
    EXPECT_EQ(findFaults(source), std::vector<std::string>{});
  }
  EXPECT_GE(files, 5);
}

TEST(Decisions, AMissingPartAndAnEssayAreReported) {
  SourceFile source{
      "DECISIONS.md",
      {"# Decisions", "## A", "- **Context:** x", "- **Choice:** x", "- **Rejected:** x", "## B",
       "- **Context:** x", "- **Choice:** x", "- **Rejected:** x", "- **Revisit when:** x"}};
  EXPECT_EQ(findFaults(source),
            std::vector<std::string>{"DECISIONS.md: 'A' lacks - **Revisit when:** "});
  source.lines.insert(source.lines.end(), kMostLines, "more");
  EXPECT_EQ(findFaults(source).back(), "DECISIONS.md: 'B' has 14 lines");
}

TEST(Decisions, APartWithoutTextIsReported) {
  const SourceFile source{
      "DECISIONS.md",
      {"## A", "- **Context:** x", "- **Choice:**  ", "- **Rejected:** x", "- **Revisit when:** x",
       "## B", "- **Context:** x", "- **Choice:** x", "- **Rejected:** x", "- **Revisit when:**"}};
  EXPECT_EQ(findFaults(source),
            (std::vector<std::string>{"DECISIONS.md: 'A' lacks - **Choice:** ",
                                      "DECISIONS.md: 'B' lacks - **Revisit when:** "}));
}

}  // namespace
}  // namespace stowage::tests
