// SPDX-License-Identifier: Apache-2.0
//
// The repository's own sources, read from the source tree, for tests that check the code's rules.
// Inputs: the source root. Output: repository-relative paths in sorted order, with their lines.
// Not here: build folders, data, anything outside the six folders of code.
#ifndef STOWAGE_TESTS_SUPPORT_SOURCE_FILES_H_
#define STOWAGE_TESTS_SUPPORT_SOURCE_FILES_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace stowage::tests {

struct SourceFile {
  std::string path;  // from the repository root, with '/'
  std::vector<std::string> lines;
};

inline SourceFile readSource(const std::filesystem::path& root, const std::filesystem::path& file) {
  SourceFile source{std::filesystem::relative(file, root).generic_string(), {}};
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) source.lines.push_back(line);
  return source;
}

/// Every file below the folders of code whose extension is one of `extensions`.
inline std::vector<SourceFile> readSources(const std::filesystem::path& root,
                                           const std::set<std::string>& extensions) {
  std::vector<SourceFile> sources;
  for (const char* folder : {"ir", "planner", "passes", "runtime", "tools", "tests"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file() && extensions.count(entry.path().extension().string()) > 0) {
        sources.push_back(readSource(root, entry.path()));
      }
    }
  }
  std::sort(sources.begin(), sources.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return sources;
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_SOURCE_FILES_H_
