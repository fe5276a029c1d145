// SPDX-License-Identifier: Apache-2.0
//
// Every file that a comment or a document names is there: paths from the repository root anywhere,
// and the relative targets of links in documents.

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/source_files.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;

const fs::path kSourceDir = STOWAGE_SOURCE_DIR;

/// "path:line: name" for each name in `source` that is no file or folder below `root`.
std::vector<std::string> findMissing(const SourceFile& source, const fs::path& root) {
  static const std::regex kPath(
      R"((^|[^\w/.@<>-])((ir|planner|passes|runtime|tools|tests|\.ci)/[\w./-]*\w\.(h|cpp|cu|md|py|json|txt|stow|svg|cmake|list))\b)");
  static const std::regex kLink(R"(\]\(([^)#:]+)[)#])");
  const bool isDocument = source.path.ends_with(".md");
  std::vector<std::string> missing;
  for (size_t i = 0; i < source.lines.size(); ++i) {
    const std::string& line = source.lines[i];
    const auto check = [&](const std::string& name, const fs::path& from) {
      if (fs::exists(from / name)) return;
      missing.push_back(source.path + ":" + std::to_string(i + 1) + ": " + name);
    };
    for (std::sregex_iterator m(line.begin(), line.end(), kPath), end; m != end; ++m) {
      check((*m)[2], root);
    }
    if (!isDocument) continue;
    for (std::sregex_iterator m(line.begin(), line.end(), kLink), end; m != end; ++m) {
      check((*m)[1], root / fs::path(source.path).parent_path());
    }
  }
  return missing;
}

/// Made-up paths are the subject of these.
bool namesMadeUpFiles(const std::string& path) {
  return path == "tests/unit/layering_test.cpp" || path == "tests/unit/rooms_test.cpp" ||
         path == "tests/unit/named_files_test.cpp" || path == "tests/lit/lit_test.cpp";
}

TEST(NamedFiles, AreThere) {
  std::vector<SourceFile> sources = readSources(kSourceDir, {".h", ".cpp", ".cu", ".md", ".py"});
  for (const char* name : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}) {
    sources.push_back(readSource(kSourceDir, kSourceDir / name));
  }
  for (const SourceFile& source : sources) {
    if (namesMadeUpFiles(source.path)) continue;
    for (const std::string& missing : findMissing(source, kSourceDir)) ADD_FAILURE() << missing;
  }
}

TEST(NamedFiles, ThatAreNotThereAreReported) {
  EXPECT_EQ(findMissing({"ir/graph/README.md",
                         {"see `ir/graph/graph.h` and ir/no_graph.h", "[a](graph.h) [b](no.md#c)"}},
                        kSourceDir),
            (std::vector<std::string>{"ir/graph/README.md:1: ir/no_graph.h",
                                      "ir/graph/README.md:2: no.md"}));
}

}  // namespace
}  // namespace stowage::tests
