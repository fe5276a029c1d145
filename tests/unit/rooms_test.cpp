// SPDX-License-Identifier: Apache-2.0
//
// The rooms (folders of sources) inside each library and the tools: which room may include which,
// without a circle; each include is in the table, and each entry of the table is used. Every room
// has a README of at most 40 lines that names its files. tools/draw_rooms.py draws the same
// includes.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
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
    {"planner/correct", {"planner/evaluate"}},
    {"planner/report", {"planner/evaluate", "planner/problem"}},
    {"planner/verdict", {"planner/evaluate", "planner/files", "planner/targets"}},
    {"planner/search", {"planner/bound", "planner/evaluate", "planner/problem", "planner/report"}},
    {"planner", {"planner/problem", "planner/search"}},
    {"passes/manage", {}},
    {"passes/lowering", {"passes/manage"}},
    {"passes/normalise", {"passes/manage"}},
    {"passes", {"passes/lowering", "passes/manage", "passes/normalise"}},
    {"runtime/files", {}},
    {"runtime/memory", {}},
    {"runtime/disk", {"runtime/memory"}},
    {"runtime/executor", {}},
    {"runtime/checkpoint", {"runtime/executor", "runtime/files"}},
    {"runtime/fake", {"runtime/executor"}},
    {"runtime/torch", {"runtime/executor", "runtime/memory"}},
    {"runtime/capture/fake", {"runtime/torch"}},
    {"runtime/cpu", {"runtime/executor", "runtime/memory", "runtime/torch"}},
    {"runtime/gpu", {"runtime/executor", "runtime/torch"}},
    {"runtime/calibrate", {"runtime/cpu", "runtime/executor", "runtime/gpu", "runtime/torch"}},
    {"runtime/capture/ops", {"runtime/capture/fake", "runtime/torch"}},
    {"runtime/capture/dispatch", {"runtime/capture/fake", "runtime/capture/ops", "runtime/torch"}},
    {"runtime/capture/ops/operands", {"runtime/capture/ops"}},
    {"runtime/capture/ops/shapes", {"runtime/capture/ops"}},
    {"runtime/cuda",
     {"runtime/calibrate", "runtime/executor", "runtime/gpu", "runtime/memory", "runtime/torch"}},
    {"runtime/runner",
     {"runtime/calibrate", "runtime/checkpoint", "runtime/cpu", "runtime/executor", "runtime/gpu",
      "runtime/memory", "runtime/torch"}},
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
      "runtime/torch"}},
    {"runtime/capture/pt2",
     {"runtime/capture/fake", "runtime/capture/graph", "runtime/capture/host_state",
      "runtime/capture/ops", "runtime/capture/trace", "runtime/executor", "runtime/files",
      "runtime/torch"}},
    {"runtime/training",
     {"runtime/capture", "runtime/capture/host_state", "runtime/checkpoint", "runtime/cpu",
      "runtime/runner", "runtime/torch"}},
    {"runtime",
     {"runtime/calibrate", "runtime/capture", "runtime/capture/graph", "runtime/files",
      "runtime/gpu", "runtime/runner", "runtime/torch"}},
    {"runtime/capture/loaded",
     {"runtime/capture/fake", "runtime/capture/ops", "runtime/capture/pt2", "runtime/capture/trace",
      "runtime/torch"}},
    {"tools/cli", {}},
    {"tools/machine", {}},
    {"tools/models", {}},
    {"tools/bench", {"tools/cli"}},
    {"tools/files", {"tools/cli"}},
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
    "ir",           "passes", "planner",      "runtime",     "runtime/capture",
    "runtime/cuda", "tools",  "tools/models", "tools/bench",
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

std::string readmeOf(const std::string& room) {
  std::ifstream stream(fs::path(kSourceDir) / room / "README.md");
  return {std::istreambuf_iterator<char>(stream), {}};
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

TEST(Rooms, EachHasAReadmeThatNamesItsFiles) {
  std::map<std::string, std::string> readmes;
  for (const SourceFile& source : readSources(kSourceDir, {".h", ".cpp", ".cu"})) {
    const std::string room = roomOf(source.path);
    if (kMayInclude.count(room) == 0) continue;
    const std::string& readme = readmes.try_emplace(room, readmeOf(room)).first->second;
    const std::string file = source.path.substr(room.size() + 1);
    const std::string stem = file.substr(0, file.find('.'));
    const bool isNamed = readme.find(stem) != std::string::npos;
    EXPECT_TRUE(isNamed) << room << "/README.md does not name " << file;
  }
  for (const auto& [room, readme] : readmes) {
    const auto lines = std::count(readme.begin(), readme.end(), '\n');
    EXPECT_LE(lines, kLongReadmes.count(room) > 0 ? 80 : 40) << room << "/README.md";
    EXPECT_GT(lines, 0) << room << "/README.md";
  }
}

}  // namespace
}  // namespace stowage::tests
