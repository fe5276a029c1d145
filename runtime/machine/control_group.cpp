// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/control_group.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "runtime/machine/numbered_lines.h"

namespace stowage::runtime {

namespace {

using llvm::StringRef;

/// The files of one version of groups.
struct Version {
  std::vector<const char*> limits;
  const char* used;
  std::vector<const char*> cached;  // in memory.stat
  const char* shared;
};
// The first version counts groups within a group in "total_..." alone.
const Version kFirst = {
    {"memory.limit_in_bytes"}, "memory.usage_in_bytes", {"total_cache"}, "total_shmem"};
const Version kSecond = {
    {"memory.max", "memory.high"}, "memory.current", {"file", "slab_reclaimable"}, "shmem"};

/// Where a tree of groups is mounted, and which of its groups is seen there.
struct Mount {
  const Version* version = nullptr;
  std::string folder;
  std::string group;
};

/// A line of mountinfo: "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory". Nothing
/// for what is no tree of groups that limit memory.
std::optional<Mount> parseMount(StringRef line) {
  const auto [place, kind] = line.split(" - ");
  llvm::SmallVector<StringRef, 8> fields;
  llvm::SmallVector<StringRef, 3> type;
  llvm::SmallVector<StringRef, 8> options;
  place.split(fields, ' ');
  kind.split(type, ' ');
  if (fields.size() < 5 || type.size() < 3) return std::nullopt;
  type[2].split(options, ',');
  Mount mount = {.folder = fields[4].str(), .group = fields[3].str()};
  if (type[0] == "cgroup2") mount.version = &kSecond;
  if (type[0] == "cgroup" && llvm::is_contained(options, "memory")) mount.version = &kFirst;
  return mount.version != nullptr ? std::optional(mount) : std::nullopt;
}

/// The process's group of that version, as /proc/self/cgroup says it: "4:memory:/a/b", "0::/a/b".
std::string ownGroup(const std::string& root, const Version* version) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const auto [number, rest] = StringRef(line).split(':');
    const auto [names, group] = rest.split(':');
    llvm::SmallVector<StringRef, 4> controllers;
    names.split(controllers, ',');
    const bool isIt = version == &kSecond ? names.empty() && number == "0"
                                          : llvm::is_contained(controllers, "memory");
    if (isIt) return group.str();
  }
  return "";
}

/// The process's group below the mount: "" is the one that is mounted, "/a/b" one in it. A group
/// that is not to be seen there (a container that shows its own alone) is the mounted one.
std::string groupBelow(const Mount& mount, const std::string& group) {
  StringRef below = group;
  if (mount.group != "/" && (!below.consume_front(mount.group) || !below.startswith("/")))
    return "";
  if (below.contains("/..")) return "";
  return below.rtrim('/').str();
}

std::optional<int64_t> readNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;  // "max" is none
}

/// What one group allows; nothing where it states no limit.
std::optional<GroupMemory> readGroup(const Version& version, const std::string& folder) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;  // the first version says a number beyond this
  int64_t limit = kNoLimit;
  for (const char* file : version.limits) {
    limit = std::min(limit, readNumber(folder + "/" + file).value_or(kNoLimit));
  }
  if (limit >= kNoLimit || limit < 0) return std::nullopt;
  int64_t held = readNumber(folder + "/" + version.used).value_or(0);
  const NumberedLines parts(folder + "/memory.stat");
  for (const char* part : version.cached) held -= parts.find(part).value_or(0);
  held += parts.find(version.shared).value_or(0);
  return GroupMemory{Bytes(limit), Bytes(std::clamp<int64_t>(limit - held, 0, limit))};
}

}  // namespace

std::optional<GroupMemory> tightestGroup(const std::string& root) {
  std::optional<GroupMemory> tightest;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  std::string line;
  while (std::getline(mounts, line)) {
    const std::optional<Mount> mount = parseMount(line);
    if (!mount) continue;
    std::string below = groupBelow(*mount, ownGroup(root, mount->version));
    for (;;) {
      const auto group = readGroup(*mount->version, root + mount->folder + below);
      if (group && (!tightest || group->free < tightest->free)) tightest = group;
      if (below.empty()) break;
      below.resize(below.rfind('/'));
    }
  }
  return tightest;
}

}  // namespace stowage::runtime
