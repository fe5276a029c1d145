// SPDX-License-Identifier: Apache-2.0
//
// The repository's own sources, read from the source tree, for tests that check the code's rules.
// Inputs: the source root. Output: repository-relative paths in sorted order, with their lines; and
// whether a name that a text uses is a file. Not here: build folders, data, anything outside the
// six folders of code.
#ifndef STOWAGE_TESTS_SUPPORT_SOURCE_FILES_H_
#define STOWAGE_TESTS_SUPPORT_SOURCE_FILES_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
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

/// Whether `name` is a file or a folder in `folder`. "stem.*" is there if any "stem.extension" is.
inline bool isThere(const std::filesystem::path& folder, const std::string& name) {
  if (!name.ends_with(".*")) return std::filesystem::exists(folder / name);
  const std::filesystem::path stem = folder / name.substr(0, name.size() - 1);
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(stem.parent_path(), missing)) {
    if (entry.path().filename().string().starts_with(stem.filename().string())) return true;
  }
  return false;
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_SOURCE_FILES_H_
