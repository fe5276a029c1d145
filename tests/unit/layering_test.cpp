// SPDX-License-Identifier: Apache-2.0
//
// The arrows between the folders and the rules that go with them, checked on every source file:
// ir <- planner <- passes, ir <- runtime (only runtime/session* and runtime/python see planner and
// passes), all <- tools; JSON only in planner/files/*_json*, runtime/capture/pt2/*json* (the
// archives' format), runtime/python/binding (answers to Python) and tools; which folder inside a
// library sees which: rooms_test.cpp;
// libtorch and CUDA only in runtime and tools, one `try`, no printing and no clocks in the
// libraries. The same arrows are checked on the libraries' link lines. Each rule is also run on
// made-up text that breaks it. And every source is in a list of sources, so that no test is lost.

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/source_files.h"

namespace stowage::tests {
namespace {

const char* const kSourceDir = STOWAGE_SOURCE_DIR;

/// What a folder's files may include of the repository, beside the folder itself.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"ir", {}},
    {"planner", {"ir"}},
    {"passes", {"ir", "planner"}},
    {"runtime", {"ir"}},
    {"tools", {"ir", "planner", "passes", "runtime"}},
    {"tests", {"ir", "planner", "passes", "runtime", "tools"}},
};

bool startsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

std::string topFolder(const std::string& path) { return path.substr(0, path.find('/')); }

bool isLibraryFile(const std::string& path) {
  static const std::set<std::string> kLibraries = {"ir", "planner", "passes", "runtime"};
  return kLibraries.count(topFolder(path)) > 0;
}

bool mayIncludeProject(const std::string& path, const std::string& header) {
  const std::string from = topFolder(path);
  const std::string to = topFolder(header);
  if (kMayInclude.count(to) == 0 || from == to) return true;
  if (startsWith(path, "runtime/session") || startsWith(path, "runtime/python/")) {
    return to == "planner" || to == "passes" || to == "ir";
  }
  return kMayInclude.at(from).count(to) > 0;
}

bool mayIncludeForeign(const std::string& path, const std::string& header) {
  const std::string folder = topFolder(path);
  const bool toolsOrTests = folder == "tools" || folder == "tests";
  static const std::set<std::string> kJson = {"nlohmann"};
  static const std::set<std::string> kTorch = {
      "torch", "ATen", "c10", "caffe2", "cuda_runtime.h", "cuda_runtime_api.h", "cuda.h", "nccl.h"};
  const std::string library = topFolder(header);
  if (kJson.count(library) > 0) {
    static const std::regex kJsonFile(
        "(planner/files/[a-z0-9_]*|runtime/capture/pt2/pt2(_[a-z0-9]+)*)"
        "_json[a-z0-9_]*\\.(h|cpp)|planner/report/plan_summary\\.(h|cpp)");
    const bool isBinding = startsWith(path, "runtime/python/binding/");
    return toolsOrTests || isBinding || std::regex_match(path, kJsonFile);
  }
  if (kTorch.count(library) > 0) return toolsOrTests || folder == "runtime";
  return true;
}

/// The line without its comment and without the contents of string literals.
std::string codeOf(const std::string& line) {
  static const std::regex kString(R"("([^"\\]|\\.)*")");
  const std::string code = std::regex_replace(line, kString, "\"\"");
  return code.substr(0, code.find("//"));
}

void checkInclude(const std::string& path, const std::string& line, std::vector<std::string>& out) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*["<]([^">]+)[">])");
  std::smatch match;
  if (!std::regex_search(line, match, kInclude)) return;
  const std::string header = match[1];
  if (!mayIncludeProject(path, header) || !mayIncludeForeign(path, header)) {
    out.push_back("may not include " + header);
  }
  // The verifier shares no code with what it checks.
  if (startsWith(path, "ir/verify") && header == "ir/graph/liveness.h") {
    out.push_back("the verifier may not include ir/graph/liveness.h");
  }
}

struct ForbiddenText {
  std::regex pattern;
  std::string why;
  std::set<std::string> allowed;  // files
};

const std::vector<ForbiddenText>& forbiddenInLibraries() {
  static const std::vector<ForbiddenText> kRules = {
      {std::regex(R"(\btry\s*(\{|$))"),
       "try",
       {"runtime/torch/torch_boundary.h", "tools/stowage.cpp"}},
      {std::regex(R"(std::(cout|cerr|clog)\b|\b(printf|fprintf|puts|fputs|putchar)\s*\()"),
       "prints",
       {}},
      {std::regex(R"(\bllvm::(outs|errs|dbgs)\s*\()"), "prints", {}},
      {std::regex(R"(\bstd::(exit|abort|quick_exit)\b|\breport_fatal_error\b)"),
       "ends the process",
       {}},
  };
  return kRules;
}

void checkText(const std::string& path, const std::string& code, std::vector<std::string>& out) {
  if (!isLibraryFile(path)) return;
  for (const ForbiddenText& rule : forbiddenInLibraries()) {
    if (rule.allowed.count(path) == 0 && std::regex_search(code, rule.pattern)) {
      out.push_back(rule.why);
    }
  }
  static const std::regex kChance(R"(_clock::now|\brandom_device\b|\bs?rand\s*\()");
  if (topFolder(path) != "runtime" && std::regex_search(code, kChance)) {
    out.push_back("decides by clock or chance");
  }
}

/// All violations of one file as "path:line: what".
std::vector<std::string> findViolations(const SourceFile& source) {
  std::vector<std::string> all;
  for (size_t i = 0; i < source.lines.size(); ++i) {
    std::vector<std::string> found;
    checkInclude(source.path, source.lines[i], found);
    checkText(source.path, codeOf(source.lines[i]), found);
    for (const std::string& what : found) {
      all.push_back(source.path + ":" + std::to_string(i + 1) + ": " + what);
    }
  }
  return all;
}

std::string guardOf(const std::string& path) {
  std::string guard = "STOWAGE_";
  for (const char c : path) {
    guard += std::isalnum(static_cast<unsigned char>(c)) != 0
                 ? static_cast<char>(std::toupper(static_cast<unsigned char>(c)))
                 : '_';
  }
  return guard + "_";
}

TEST(Layering, SourcesFollowTheArrows) {
  const std::vector<SourceFile> sources = readSources(kSourceDir, {".h", ".cpp", ".cu"});
  ASSERT_FALSE(sources.empty());
  for (const SourceFile& source : sources) {
    for (const std::string& violation : findViolations(source)) ADD_FAILURE() << violation;
  }
}

TEST(Layering, SourcesCarryLicenceAndGuard) {
  for (const SourceFile& source : readSources(kSourceDir, {".h", ".cpp", ".cu"})) {
    ASSERT_FALSE(source.lines.empty()) << source.path;
    EXPECT_EQ(source.lines[0], "// SPDX-License-Identifier: Apache-2.0") << source.path;
    if (!source.path.ends_with(".h")) continue;
    const std::string guard = "#ifndef " + guardOf(source.path);
    EXPECT_NE(std::find(source.lines.begin(), source.lines.end(), guard), source.lines.end())
        << source.path << ": expected " << guard;
  }
}

struct LineCase {
  std::string path;
  std::string line;
  bool legal;
};

const std::vector<LineCase> kLineCases = {
    {"ir/graph/graph.h", "#include \"planner/plan.h\"", false},
    {"ir/graph/graph.h", "#include <torch/torch.h>", false},
    {"ir/graph/graph.cpp", "#include \"ir/graph/graph.h\"", true},
    {"ir/verify/verify.cpp", "#include \"ir/graph/liveness.h\"", false},
    {"ir/graph/check_graph.cpp", "#include \"ir/graph/liveness.h\"", true},
    {"planner/search/frontier.cpp", "#include \"passes/manage/pass.h\"", false},
    {"planner/search/frontier.cpp", "#include <nlohmann/json.hpp>", false},
    {"planner/files/plan_json.cpp", "#include <nlohmann/json.hpp>", true},
    {"planner/files/plan_json_read.cpp", "#include <nlohmann/json.hpp>", true},
    {"passes/manage/pass.h", "#include \"planner/problem/decisions.h\"", true},
    {"passes/manage/pass.h", "#include \"runtime/executor/device.h\"", false},
    {"passes/manage/pass.h", "#include <ATen/core/Tensor.h>", false},
    {"runtime/executor/executor.cpp", "#include \"planner/problem/decisions.h\"", false},
    {"runtime/session.cpp", "#include \"planner/problem/decisions.h\"", true},
    {"runtime/session.cpp", "#include \"tools/summary.h\"", false},
    {"runtime/python/binding/plan_handle.cpp", "#include \"planner/report/plan_summary.h\"", true},
    {"runtime/python/binding/plan_handle.cpp", "#include \"tools/summary.h\"", false},
    {"runtime/python/binding/plan_handle.cpp", "#include <nlohmann/json.hpp>", true},
    {"runtime/cpu/cpu_device.cpp", "#include <c10/core/Allocator.h>", true},
    {"runtime/executor/executor.cpp", "#include <nlohmann/json.hpp>", false},
    {"runtime/capture/pt2/pt2_json.cpp", "#include <nlohmann/json.hpp>", true},
    {"runtime/capture/pt2/pt2_json_fields.h", "#include <nlohmann/json.hpp>", true},
    {"runtime/capture/pt2/pt2_import.cpp", "#include <nlohmann/json.hpp>", false},
    {"runtime/capture/state_json.cpp", "#include <nlohmann/json.hpp>", false},
    {"tools/stowage.cpp", "#include \"runtime/session.h\"", true},
    {"tools/stowage.cpp", "#include \"tests/support/source_files.h\"", false},
    {"runtime/torch/torch_boundary.h", "  try {", true},
    {"runtime/executor/executor.cpp", "  try {", false},
    {"planner/files/plan_json.cpp", "  try {", false},
    {"planner/files/plan_json.cpp", "  // nothing to try {", true},
    {"ir/text/printer.cpp", "  std::cout << text;", false},
    {"ir/text/printer.cpp", "  std::printf(\"%d\", 1);", false},
    {"ir/text/printer.cpp", "  std::snprintf(buffer, n, \"%d\", 1);", true},
    {"ir/text/printer.cpp", "  const char* text = \"printf(\";", true},
    {"ir/text/printer.cpp", "  std::abort();", false},
    {"tools/summary.cpp", "  std::cout << text;", true},
    {"planner/search/frontier.cpp", "  auto t = std::chrono::steady_clock::now();", false},
    {"runtime/executor/executor.cpp", "  auto t = std::chrono::steady_clock::now();", true},
};

TEST(Layering, TellsLegalLinesFromOthers) {
  for (const LineCase& c : kLineCases) {
    EXPECT_EQ(findViolations({c.path, {c.line}}).empty(), c.legal) << c.path << ": " << c.line;
  }
}

/// Reads "name: link items" lines: what CMake recorded for each library.
std::map<std::string, std::string> readLinkLines(std::istream& stream) {
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) lines[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return lines;
}

/// Libraries of the repository and foreign ones that `name` must not link.
std::vector<std::string> forbiddenLinks(const std::string& name) {
  const std::map<std::string, std::vector<std::string>> forbidden = {
      {"ir",
       {"stowage::planner", "stowage::passes", "stowage::executor", "stowage::runtime",
        "nlohmann_json", "torch::"}},
      {"plan_file",
       {"stowage::planner", "stowage::passes", "stowage::executor", "stowage::runtime", "torch::"}},
      {"planner", {"stowage::passes", "stowage::executor", "stowage::runtime", "torch::"}},
      {"passes", {"stowage::executor", "stowage::runtime", "nlohmann_json", "torch::"}},
      {"executor",
       {"stowage::planner", "stowage::passes", "stowage::runtime", "nlohmann_json", "torch::"}},
      {"runtime", {"stowage::planner", "stowage::passes"}},
  };
  const auto found = forbidden.find(name);
  return found == forbidden.end() ? std::vector<std::string>{} : found->second;
}

std::vector<std::string> findBadLinks(const std::map<std::string, std::string>& lines) {
  std::vector<std::string> bad;
  for (const auto& [name, items] : lines) {
    for (const std::string& link : forbiddenLinks(name)) {
      if (items.find(link) != std::string::npos)
        bad.push_back(std::string(name).append(" links ").append(link));
    }
  }
  return bad;
}

TEST(Layering, LibrariesLinkAlongTheArrows) {
  std::ifstream stream(STOWAGE_BINARY_DIR "/tests/link_lines.txt");
  const std::map<std::string, std::string> lines = readLinkLines(stream);
  for (const char* name : {"ir", "planner", "passes", "executor"}) {
    EXPECT_EQ(lines.count(name), 1U) << "no link line of " << name;
  }
  EXPECT_EQ(findBadLinks(lines), std::vector<std::string>{});
}

TEST(Layering, ReportsALibraryThatLinksUpwards) {
  std::istringstream stream("ir: stowage::llvm;stowage::planner\npasses: stowage::ir\n");
  EXPECT_EQ(findBadLinks(readLinkLines(stream)),
            std::vector<std::string>{"ir links stowage::planner"});
}

/// Source files that no list of sources in `lists` names. A list names them from its own folder.
std::vector<std::string> findUnbuilt(const std::vector<SourceFile>& sources,
                                     const std::vector<SourceFile>& lists) {
  const std::regex between("[()\"]");
  std::set<std::string> named;
  for (const SourceFile& list : lists) {
    const std::string folder = list.path.substr(0, list.path.rfind('/') + 1);
    for (const std::string& line : list.lines) {
      std::istringstream words(std::regex_replace(line, between, " "));
      for (std::string word; words >> word;) named.insert(folder + word);
    }
  }
  std::vector<std::string> unbuilt;
  for (const SourceFile& source : sources) {
    if (named.count(source.path) == 0) unbuilt.push_back(source.path);
  }
  return unbuilt;
}

// A test that nothing builds passes for ever.
TEST(Layering, EverySourceIsInAListOfSources) {
  const std::vector<SourceFile> lists = readSources(kSourceDir, {".txt", ".cmake"});
  EXPECT_EQ(findUnbuilt(readSources(kSourceDir, {".cpp"}), lists), std::vector<std::string>{});
}

TEST(Layering, ReportsASourceThatNoListNames) {
  const std::vector<SourceFile> lists = {
      {"tests/CMakeLists.txt", {"stowage_test(a SOURCES unit/a.cpp LIBS b)"}}};
  EXPECT_EQ(findUnbuilt({{"tests/unit/a.cpp", {}}, {"tests/unit/b.cpp", {}}}, lists),
            std::vector<std::string>{"tests/unit/b.cpp"});
}

// It has a copy of LLVM's error classes of its own, which do not know the program's errors.
TEST(Layering, TheCudaLibraryHandlesNoErrorsByItself) {
  for (const SourceFile& source : readSources(kSourceDir, {".h", ".cpp"})) {
    if (source.path.rfind("runtime/cuda/", 0) != 0) continue;
    for (const std::string& line : source.lines) {
      for (const char* call : {"llvm::consumeError(", "llvm::handle", "llvm::toString("}) {
        EXPECT_EQ(line.find(call), std::string::npos) << source.path << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace stowage::tests
