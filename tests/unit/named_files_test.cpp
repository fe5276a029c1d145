// SPDX-License-Identifier: Apache-2.0
//
// Every file that a comment or a document names is there: paths from the repository root anywhere,
// also folders and programs such as tools/dev; bare snake_case names in comments and in backticks;
// the relative targets of links in documents, and the headings that their anchors name.

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/source_files.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;

const fs::path kSourceDir = STOWAGE_SOURCE_DIR;

using Texts = std::vector<std::string>;

/// Files of libtorch that comments and decisions name as sources. Others of it are in camel case.
const std::set<std::string> kOfLibtorch = {"attention.cu", "driver_types.h",
                                           "generated_serialization_types.h",
                                           "layer_norm_kernel.cu", "sdp_utils.cpp"};

bool isDocument(const std::string& path) { return path.ends_with(".md"); }
bool isCode(const std::string& path) {
  return path.ends_with(".h") || path.ends_with(".cpp") || path.ends_with(".cu");
}

/// All matches of `pattern`'s first group.
Texts matchesOf(const std::string& text, const std::regex& pattern) {
  Texts found;
  for (std::sregex_iterator m(text.begin(), text.end(), pattern), end; m != end; ++m) {
    found.push_back((*m)[1]);
  }
  return found;
}

/// What follows a "//" that stands in no string and no address.
std::string commentOf(const std::string& line) {
  bool isText = false;
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      isText = !isText;
    } else if (!isText && line.compare(i, 2, "//") == 0 && (i == 0 || line[i - 1] != ':')) {
      return line.substr(i + 2);
    }
  }
  return "";
}

/// The part of a line that speaks of files by their bare names.
std::string proseOf(const SourceFile& source, const std::string& line) {
  static const std::regex kQuoted("`([^`]+)`");
  if (isCode(source.path)) return commentOf(line);
  if (!isDocument(source.path)) return "";
  std::string quoted;
  for (const std::string& text : matchesOf(line, kQuoted)) quoted += text + '\n';
  return quoted;
}

/// The anchors that GitHub gives the headings of a page.
std::set<std::string> anchorsOf(const SourceFile& page) {
  static const std::regex kLink(R"(\[([^\]]*)\]\([^)]*\))");
  std::set<std::string> anchors;
  std::map<std::string, int> counts;
  bool isCodeBlock = false;
  for (const std::string& line : page.lines) {
    if (line.starts_with("```")) isCodeBlock = !isCodeBlock;
    const size_t level = line.find_first_not_of('#');
    if (isCodeBlock || level == 0 || level == std::string::npos || line[level] != ' ') continue;
    std::string anchor;
    for (const char c : std::regex_replace(line.substr(level + 1), kLink, "$1")) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == ' ' || c == '-') anchor += '-';
      if (std::isalnum(byte) != 0 || c == '_' || byte >= 0x80) {
        anchor += static_cast<char>(std::tolower(byte));
      }
    }
    const int before = counts[anchor]++;
    anchors.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
  }
  return anchors;
}

/// Names of all files below the folders of code, and of those in the root.
std::set<std::string> allFileNames() {
  std::set<std::string> names;
  for (const char* folder : {"ir", "planner", "passes", "runtime", "tools", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kSourceDir / folder)) {
      names.insert(entry.path().filename().string());
    }
  }
  for (const auto& entry : fs::directory_iterator(kSourceDir)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

class NameChecker {
 public:
  /// "path:line: name" for each name in `source` that is nothing below the repository's root.
  Texts findMissing(const SourceFile& source) {
    Texts missing;
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const auto add = [&](const std::string& name) {
        const std::string text = source.path + ":" + std::to_string(i + 1) + ": " + name;
        if (missing.empty() || missing.back() != text) missing.push_back(text);
      };
      for (const std::string& name : missingIn(source, source.lines[i])) add(name);
    }
    return missing;
  }

 private:
  Texts missingIn(const SourceFile& source, const std::string& line) {
    Texts missing;
    if (line.find('/') != std::string::npos) {
      addMissingFiles(line, missing);
      const bool isAll = isDocument(source.path);
      addMissingFolders(isAll ? line : proseOf(source, line), missing);
    }
    if (line.find('.') != std::string::npos) addMissingBareNames(proseOf(source, line), missing);
    if (isDocument(source.path) && line.find("](") != std::string::npos) {
      addMissingTargets(source, line, missing);
    }
    return missing;
  }

  static void addMissingFiles(const std::string& line, Texts& missing) {
    static const std::regex kPath(
        R"((?:^|[^\w/.@<>-])((?:ir|planner|passes|runtime|tools|tests|\.ci)/[\w./-]*\w\.(?:h|cpp|cu|md|py|json|txt|stow|svg|cmake|list))\b)");
    for (const std::string& name : matchesOf(line, kPath)) {
      if (!isThere(kSourceDir, name)) missing.push_back(name);
    }
  }

  // "tools/dev", "planner/search", "passes/plan_step.*"; not "tools/<verb>" and "tests/gpu*".
  static void addMissingFolders(const std::string& text, Texts& missing) {
    static const std::regex kFolder(
        R"((?:^|[^\w/.@<>-])((?:ir|planner|passes|runtime|tools|tests|\.ci)/[\w/-]*\w(?:\.\*)?)(?![\w/<*{-]|\.\w))");
    for (const std::string& name : matchesOf(text, kFolder)) {
      if (!isThere(kSourceDir, name)) missing.push_back(name);
    }
  }

  void addMissingBareNames(const std::string& text, Texts& missing) const {
    static const std::regex kBare(
        R"((?:^|[^\w/.*<>-])([a-z][a-z0-9_]*\.(?:h|cpp|cu|py|md|cmake))(?![\w/]|\.\w))");
    for (const std::string& name : matchesOf(text, kBare)) {
      if (fileNames_.count(name) + kOfLibtorch.count(name) == 0) missing.push_back(name);
    }
  }

  void addMissingTargets(const SourceFile& source, const std::string& line, Texts& missing) {
    static const std::regex kTarget(R"(\]\(([^):\s]+)\))");
    for (const std::string& target : matchesOf(line, kTarget)) {
      const size_t hash = target.find('#');
      const std::string name = target.substr(0, hash);
      const fs::path page = name.empty() ? kSourceDir / source.path
                                         : kSourceDir / fs::path(source.path).parent_path() / name;
      if (!fs::exists(page)) {
        missing.push_back(name);
      } else if (hash != std::string::npos && !hasAnchor(page, target.substr(hash + 1))) {
        missing.push_back(target);
      }
    }
  }

  bool hasAnchor(const fs::path& page, const std::string& anchor) {
    const auto [known, isNew] = anchors_.try_emplace(page.lexically_normal().string());
    if (isNew) known->second = anchorsOf(readSource(kSourceDir, page));
    return known->second.count(anchor) > 0;
  }

  const std::set<std::string> fileNames_ = allFileNames();
  std::map<std::string, std::set<std::string>> anchors_;  // by page
};

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
  NameChecker checker;
  for (const SourceFile& source : sources) {
    if (namesMadeUpFiles(source.path)) continue;
    for (const std::string& missing : checker.findMissing(source)) ADD_FAILURE() << missing;
  }
}

TEST(NamedFiles, ThatAreNotThereAreReported) {
  EXPECT_EQ(NameChecker().findMissing(
                {"ir/graph/README.md",
                 {"see `ir/graph/graph.h` and ir/no_graph.h", "[a](graph.h) [b](no.md#c)"}}),
            (Texts{"ir/graph/README.md:1: ir/no_graph.h", "ir/graph/README.md:2: no.md"}));
}

TEST(NamedFiles, FoldersAndProgramsThatAreNotThereAreReported) {
  EXPECT_EQ(NameChecker().findMissing({"CONTRIBUTING.md",
                                       {"`.ci/run` and `.ci/walk`, tools/dev test. tools/devs.",
                                        "`planner/plan.*`, `planner/plans.*`, `tools/<verb>`",
                                        "tests/unit/ir, https://x.org/tools/none"}}),
            (Texts{"CONTRIBUTING.md:1: .ci/walk", "CONTRIBUTING.md:1: tools/devs",
                   "CONTRIBUTING.md:2: planner/plans.*"}));
}

TEST(NamedFiles, BareNamesThatAreNotThereAreReported) {
  EXPECT_EQ(NameChecker().findMissing(
                {"ir/graph/graph.h",
                 {"#include \"no_graph.h\"", "/// As in graph.h and no_graph.h.",
                  "run(\"// none.h\");  // see gone.cpp", "// <vector.h>, some/where/vector.h"}}),
            (Texts{"ir/graph/graph.h:2: no_graph.h", "ir/graph/graph.h:3: gone.cpp"}));
  EXPECT_EQ(NameChecker().findMissing({"ir/graph/README.md", {"`gone.h`, bare.h, `graph.h`"}}),
            Texts{"ir/graph/README.md:1: gone.h"});
}

TEST(NamedFiles, AnchorsWithoutAHeadingAreReported) {
  EXPECT_EQ(anchorsOf({"page.md",
                       {"# C++ training: `a_b` - [more](x.md)", "```", "# not one", "```", "#no",
                        "## Same", "## Same"}}),
            (std::set<std::string>{"c-training-a_b---more", "same", "same-1"}));
  EXPECT_EQ(NameChecker().findMissing(
                {"ir/graph/README.md",
                 {"[a](README.md#files-in-reading-order) [b](README.md#gone) [c](#gone-too)"}}),
            (Texts{"ir/graph/README.md:1: README.md#gone", "ir/graph/README.md:1: #gone-too"}));
}

}  // namespace
}  // namespace stowage::tests
