// SPDX-License-Identifier: Apache-2.0
//
// The rooms (folders of sources) inside each library and the tools: which room may include which,
// without a circle; each include is in the table, and each entry of the table is used. Every folder
// with sources is a room. It has a README of at most 40 lines that names all its files, and no file
// that is not there. tools/draw_rooms.py draws the same includes.

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/source_files.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;

const char* const kSourceDir = STOWAGE_SOURCE_DIR;

using Rooms = std::map<std::string, std::set<std::string>>;

/// A room, and the rooms of its own library whose headers it may include.
const Rooms kMayInclude = {
    {"ir/base", {}},
    {"ir/graph", {"ir/base"}},
    {"ir/schedule", {"ir/base", "ir/graph"}},
    {"ir/text", {"ir/base", "ir/graph", "ir/schedule"}},
    {"ir/costs", {"ir/base", "ir/graph", "ir/schedule", "ir/text"}},
    {"ir/verify", {"ir/base", "ir/costs", "ir/graph", "ir/schedule"}},
    {"planner/addresses", {}},
    {"planner/problem", {}},
    {"planner/targets", {}},
    {"planner/evaluate", {"planner/addresses", "planner/problem"}},
    {"planner/files", {"planner/problem"}},
    {"planner/bound", {"planner/evaluate", "planner/problem"}},
    {"planner/flow", {"planner/evaluate", "planner/problem"}},
    {"planner/correct", {"planner/evaluate"}},
    {"planner/report", {"planner/evaluate", "planner/problem"}},
    {"planner/verdict", {"planner/evaluate", "planner/files", "planner/targets"}},
    {"planner/search",
     {"planner/bound", "planner/evaluate", "planner/flow", "planner/problem", "planner/report"}},
    {"planner", {"planner/bound", "planner/problem", "planner/search"}},
    {"passes/manage", {}},
    {"passes/lowering", {"passes/manage"}},
    {"passes/normalise", {"passes/manage"}},
    {"passes", {"passes/lowering", "passes/manage", "passes/normalise"}},
    {"runtime/files", {}},
    {"runtime/machine", {}},
    {"runtime/ranks", {"runtime/files"}},
    {"runtime/collectives", {"runtime/ranks"}},
    {"runtime/memory", {}},
    {"runtime/disk", {"runtime/files", "runtime/memory"}},
    {"runtime/executor", {}},
    {"runtime/checkpoint", {"runtime/executor", "runtime/files", "runtime/ranks"}},
    {"runtime/fake", {"runtime/executor"}},
    {"runtime/torch/2.11.0/this_torch", {}},
    {"runtime/torch/2.15.0/this_torch", {}},
    {"runtime/torch/internals", {}},
    {"runtime/torch", {"runtime/executor", "runtime/memory"}},
    {"runtime/capture/fake", {"runtime/torch"}},
    {"runtime/cpu",
     {"runtime/collectives", "runtime/disk", "runtime/executor", "runtime/machine",
      "runtime/memory", "runtime/ranks", "runtime/torch"}},
    {"runtime/launch", {"runtime/ranks", "runtime/torch"}},
    {"runtime/gpu", {"runtime/disk", "runtime/executor", "runtime/ranks", "runtime/torch"}},
    {"runtime/calibrate",
     {"runtime/collectives", "runtime/cpu", "runtime/executor", "runtime/gpu", "runtime/ranks",
      "runtime/torch"}},
    {"runtime/capture/ops", {"runtime/capture/fake", "runtime/torch"}},
    {"runtime/capture/dispatch",
     {"runtime/capture/fake", "runtime/capture/ops", "runtime/torch", "runtime/torch/internals"}},
    {"runtime/capture/ops/operands", {"runtime/capture/ops"}},
    {"runtime/capture/ops/shapes", {"runtime/capture/ops"}},
    {"runtime/cuda",
     {"runtime/calibrate", "runtime/collectives", "runtime/disk", "runtime/executor", "runtime/gpu",
      "runtime/machine", "runtime/memory", "runtime/ranks", "runtime/torch"}},
    {"runtime/runner",
     {"runtime/calibrate", "runtime/checkpoint", "runtime/cpu", "runtime/disk", "runtime/executor",
      "runtime/gpu", "runtime/machine", "runtime/memory", "runtime/ranks", "runtime/torch"}},
    {"runtime/capture/trace",
     {"runtime/capture/dispatch", "runtime/capture/fake", "runtime/capture/ops", "runtime/torch"}},
    {"runtime/capture/host_state",
     {"runtime/capture/dispatch", "runtime/capture/fake", "runtime/capture/trace",
      "runtime/torch"}},
    {"runtime/capture/graph",
     {"runtime/capture/dispatch", "runtime/capture/fake", "runtime/capture/host_state",
      "runtime/capture/trace", "runtime/executor", "runtime/torch"}},
    {"runtime/capture",
     {"runtime/capture/dispatch", "runtime/capture/fake", "runtime/capture/graph",
      "runtime/capture/host_state", "runtime/capture/trace", "runtime/executor", "runtime/runner",
      "runtime/torch", "runtime/torch/internals"}},
    {"runtime/capture/pt2",
     {"runtime/capture/fake", "runtime/capture/graph", "runtime/capture/host_state",
      "runtime/capture/ops", "runtime/capture/trace", "runtime/executor", "runtime/files",
      "runtime/torch"}},
    {"runtime/training",
     {"runtime/capture", "runtime/capture/host_state", "runtime/checkpoint", "runtime/cpu",
      "runtime/ranks", "runtime/runner", "runtime/torch"}},
    {"runtime",
     {"runtime/calibrate", "runtime/capture", "runtime/capture/graph", "runtime/disk",
      "runtime/files", "runtime/gpu", "runtime/launch", "runtime/ranks", "runtime/runner",
      "runtime/torch"}},
    {"runtime/python", {}},
    {"runtime/python/stowage", {}},
    {"runtime/python/binding",
     {"runtime", "runtime/capture", "runtime/capture/dispatch", "runtime/capture/fake",
      "runtime/capture/graph", "runtime/capture/host_state", "runtime/checkpoint", "runtime/launch",
      "runtime/runner", "runtime/torch", "runtime/torch/internals"}},
    {"runtime/capture/loaded",
     {"runtime/capture/fake", "runtime/capture/ops", "runtime/capture/pt2", "runtime/capture/trace",
      "runtime/torch"}},
    {"tools/cli", {}},
    {"tools/machine", {}},
    {"tools/models", {}},
    {"tools/bench", {"tools/cli"}},
    {"tools/upgrade", {}},
    {"tools/files", {}},
    {"tools/training", {"tools/models"}},
    {"tools/planning", {"tools/cli", "tools/files"}},
    {"tools/run",
     {"tools/cli", "tools/files", "tools/machine", "tools/models", "tools/planning",
      "tools/training"}},
    {"tools/verbs",
     {"tools/cli", "tools/files", "tools/machine", "tools/planning", "tools/run",
      "tools/training"}},
    {"tools", {"tools/cli", "tools/files", "tools/verbs"}},
};

/// Of a whole library, or with tables for users: at most 80 lines, as size_test.cpp says.
const std::set<std::string> kLongReadmes = {
    "ir",           "passes",         "planner", "runtime",      "runtime/capture",
    "runtime/cuda", "runtime/python", "tools",   "tools/models", "tools/bench",
};

std::string roomOf(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string libraryOf(const std::string& path) { return path.substr(0, path.find('/')); }

/// Includes between rooms of one library: from, to, and "path includes header".
struct RoomInclude {
  std::string from;
  std::string to;
  std::string text;
};

std::vector<RoomInclude> findIncludes(const SourceFile& source) {
  static const std::regex kInclude("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  std::vector<RoomInclude> found;
  for (const std::string& line : source.lines) {
    std::smatch match;
    if (!std::regex_search(line, match, kInclude)) continue;
    const std::string header = match[1];
    const bool isOfLibrary = libraryOf(header) == libraryOf(source.path);
    if (!isOfLibrary || roomOf(header) == roomOf(source.path)) continue;
    found.push_back({roomOf(source.path), roomOf(header), source.path + " includes " + header});
  }
  return found;
}

std::vector<RoomInclude> allIncludes() {
  std::vector<RoomInclude> all;
  for (const SourceFile& source : readSources(kSourceDir, {".h", ".cpp", ".cu"})) {
    if (libraryOf(source.path) == "tests") continue;
    const std::vector<RoomInclude> found = findIncludes(source);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

bool isAllowed(const RoomInclude& include, const Rooms& rooms) {
  const auto room = rooms.find(include.from);
  return room != rooms.end() && room->second.count(include.to) > 0;
}

/// Whether a way along `rooms` leads from `from` to `to`.
bool leadsTo(const std::string& from, const std::string& to, const Rooms& rooms,
             std::set<std::string>& seen) {
  if (from == to) return true;
  const auto room = rooms.find(from);
  if (room == rooms.end() || !seen.insert(from).second) return false;
  for (const std::string& below : room->second) {
    if (leadsTo(below, to, rooms, seen)) return true;
  }
  return false;
}

/// "a -> b" for each entry that closes a circle.
std::vector<std::string> findCircles(const Rooms& rooms) {
  std::vector<std::string> circles;
  for (const auto& [room, below] : rooms) {
    for (const std::string& other : below) {
      std::set<std::string> seen;
      if (leadsTo(other, room, rooms, seen)) {
        circles.push_back(std::string(room).append(" -> ").append(other));
      }
    }
  }
  return circles;
}

/// Folders of `sources` that are no room of `rooms`. Tests have no rooms.
std::set<std::string> findUnlisted(const std::vector<SourceFile>& sources, const Rooms& rooms) {
  std::set<std::string> unlisted;
  for (const SourceFile& source : sources) {
    const bool isListed = libraryOf(source.path) == "tests" || rooms.count(roomOf(source.path)) > 0;
    if (!isListed) unlisted.insert(roomOf(source.path));
  }
  return unlisted;
}

/// What a README says in backticks, outside of code blocks, word by word.
struct ReadmeNames {
  std::set<std::string> everywhere;
  std::set<std::string> inFileTable;  // in rows of a table whose first column is "file"
};

ReadmeNames findNames(const std::vector<std::string>& readme) {
  static const std::regex kQuoted("`([^`]+)`");
  ReadmeNames names;
  bool isCode = false;
  bool isFileTable = false;
  bool wasRow = false;
  for (const std::string& line : readme) {
    if (line.starts_with("```")) isCode = !isCode;
    if (isCode) continue;
    const bool isRow = line.starts_with("|");
    if (!isRow || !wasRow) isFileTable = line.starts_with("| file");
    wasRow = isRow;
    for (std::sregex_iterator m(line.begin(), line.end(), kQuoted), end; m != end; ++m) {
      std::istringstream words((*m)[1]);
      for (std::string word; words >> word;) {
        names.everywhere.insert(word);
        if (isFileTable) names.inFileTable.insert(word);
      }
    }
  }
  return names;
}

/// "file.h is not named" for each of the room's `files` that the README leaves out, and
/// "stem.* is not there" for what its table of files has and the room has not.
std::vector<std::string> findReadmeFaults(const std::string& room,
                                          const std::vector<std::string>& readme,
                                          const std::vector<std::string>& files) {
  static const std::regex kFileName(R"([\w./-]*\w\.(\*|h|cpp|cu|py))");
  const ReadmeNames names = findNames(readme);
  std::vector<std::string> faults;
  for (const std::string& file : files) {
    const std::string stem = file.substr(0, file.find('.'));
    const bool isNamed = names.everywhere.count(file) + names.everywhere.count(stem + ".*") > 0;
    if (!isNamed) faults.push_back(file + " is not named");
  }
  for (const std::string& name : names.inFileTable) {
    if (!std::regex_match(name, kFileName) || isThere(fs::path(kSourceDir) / room, name)) continue;
    const bool isPath = name.find('/') != std::string::npos;
    if (!isPath || !isThere(kSourceDir, name)) faults.push_back(name + " is not there");
  }
  return faults;
}

TEST(Rooms, IncludeWhatTheTableAllows) {
  const std::vector<RoomInclude> includes = allIncludes();
  ASSERT_FALSE(includes.empty());
  for (const RoomInclude& include : includes) {
    EXPECT_TRUE(isAllowed(include, kMayInclude)) << include.text;
  }
}

TEST(Rooms, TheTableAllowsNothingThatNobodyUses) {
  Rooms used;
  for (const RoomInclude& include : allIncludes()) used[include.from].insert(include.to);
  for (const auto& [room, below] : kMayInclude) {
    EXPECT_EQ(below, used[room]) << room;
    EXPECT_TRUE(fs::is_directory(fs::path(kSourceDir) / room)) << room;
  }
}

TEST(Rooms, TheTableHasNoCircle) {
  EXPECT_EQ(findCircles(kMayInclude), std::vector<std::string>{});
}

TEST(Rooms, AnUpwardIncludeIsReported) {
  const SourceFile source = {"planner/evaluate/timing.cpp",
                             {"#include \"planner/search/frontier.h\""}};
  const std::vector<RoomInclude> includes = findIncludes(source);
  ASSERT_EQ(includes.size(), 1U);
  EXPECT_FALSE(isAllowed(includes[0], kMayInclude));
  Rooms rooms = kMayInclude;
  rooms["planner/evaluate"].insert("planner/search");
  EXPECT_FALSE(findCircles(rooms).empty());
}

TEST(Rooms, EveryFolderWithSourcesIsOne) {
  EXPECT_EQ(findUnlisted(readSources(kSourceDir, {".h", ".cpp", ".cu"}), kMayInclude),
            std::set<std::string>{});
}

TEST(Rooms, AFolderThatTheTableLacksIsReported) {
  EXPECT_EQ(findUnlisted({{"ir/loose.h", {}},
                          {"ir/base/ids.h", {}},
                          {"planner/search/deeper/rule.cpp", {}},
                          {"tests/unit/rooms_test.cpp", {}}},
                         kMayInclude),
            (std::set<std::string>{"ir", "planner/search/deeper"}));
}

TEST(Rooms, EachHasAReadmeThatNamesItsFiles) {
  std::map<std::string, std::vector<std::string>> filesOf;
  for (const SourceFile& source : readSources(kSourceDir, {".h", ".cpp", ".cu", ".py"})) {
    const std::string room = roomOf(source.path);
    if (kMayInclude.count(room) > 0) filesOf[room].push_back(source.path.substr(room.size() + 1));
  }
  for (const auto& [room, files] : filesOf) {
    const SourceFile readme = readSource(kSourceDir, fs::path(kSourceDir) / room / "README.md");
    for (const std::string& fault : findReadmeFaults(room, readme.lines, files)) {
      ADD_FAILURE() << readme.path << ": " << fault;
    }
    EXPECT_LE(readme.lines.size(), kLongReadmes.count(room) > 0 ? 80U : 40U) << readme.path;
    EXPECT_FALSE(readme.lines.empty()) << readme.path;
  }
}

// A name without backticks, a part of a word and a name in a code block do not count. Paths are
// those of the room or of the repository.
TEST(Rooms, AReadmeThatNamesTooLittleOrTooMuchIsReported) {
  const std::vector<std::string> readme = {
      "profiles.cpp and `rooflines.*`",
      "```",
      "`roofline.h`",
      "```",
      "| file | what it holds |",
      "|--|--|",
      "| `roofline.cpp` `refusal.*` | more than `evaluate/timing.cpp` and `costs.json` |",
      "| [`other`](other.md) | see `planner/evaluate/timing.*`, `planner/evaluate/no.h` |",
      "",
      "| word | meaning |",
      "|--|--|",
      "| `not_a_file.h` | a word |"};
  EXPECT_EQ(
      findReadmeFaults("planner/targets", readme, {"profiles.cpp", "roofline.cpp", "roofline.h"}),
      (std::vector<std::string>{"profiles.cpp is not named", "roofline.h is not named",
                                "evaluate/timing.cpp is not there",
                                "planner/evaluate/no.h is not there", "refusal.* is not there"}));
}

}  // namespace
}  // namespace stowage::tests
