// SPDX-License-Identifier: Apache-2.0
//
// The line limit: a file that outgrows it is split by subject. 400 lines of code, 600 of a test, 80
// of a folder's README, 120 of the README in the root. Tables may be exempt, by name, with their
// own limit.

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/source_files.h"

namespace stowage::tests {
namespace {

constexpr size_t kCodeLines = 400;
constexpr size_t kTestLines = 600;
constexpr size_t kReadmeLines = 80;
constexpr size_t kRootReadmeLines = 120;

/// Tables, one entry per line, that splitting would not make easier to read: file -> its own limit.
const std::map<std::string, size_t>& exemptTables() {
  static const std::map<std::string, size_t> kTables = {
      {"ir/graph/op_table.cpp", 1100},  // one row per op
  };
  return kTables;
}

size_t lineLimit(const std::string& path) {
  const auto exempt = exemptTables().find(path);
  if (exempt != exemptTables().end()) return exempt->second;
  if (path.ends_with("README.md")) return kReadmeLines;
  return path.starts_with("tests/") ? kTestLines : kCodeLines;
}

TEST(Size, FilesStayWithinTheirLineLimit) {
  const std::vector<SourceFile> sources =
      readSources(STOWAGE_SOURCE_DIR, {".h", ".cpp", ".cu", ".py", ".cmake"});
  ASSERT_FALSE(sources.empty());
  for (const SourceFile& source : sources) {
    EXPECT_LE(source.lines.size(), lineLimit(source.path)) << source.path;
  }
}

TEST(Size, ReadmesStayWithinTheirLineLimit) {
  for (const SourceFile& source : readSources(STOWAGE_SOURCE_DIR, {".md"})) {
    if (!source.path.ends_with("README.md")) continue;
    EXPECT_LE(source.lines.size(), kReadmeLines) << source.path;
  }
  const SourceFile root =
      readSource(STOWAGE_SOURCE_DIR, std::filesystem::path(STOWAGE_SOURCE_DIR) / "README.md");
  EXPECT_LE(root.lines.size(), kRootReadmeLines);
}

TEST(Size, ExemptionsAreStillNeeded) {
  std::map<std::string, size_t> lines;
  for (const SourceFile& source : readSources(STOWAGE_SOURCE_DIR, {".h", ".cpp"})) {
    lines[source.path] = source.lines.size();
  }
  for (const auto& [path, limit] : exemptTables()) {
    EXPECT_GT(lines[path], kCodeLines) << path << " needs no exemption";
  }
}

}  // namespace
}  // namespace stowage::tests
