// SPDX-License-Identifier: Apache-2.0
#include "tools/machine/machine_memory.h"

#include <llvm/ADT/StringRef.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>

namespace stowage::tools {

namespace {

/// The numbers of a file of lines "name: 12 kB" or "name 12"; nothing for a name that is not there.
class NumberedLines {
 public:
  explicit NumberedLines(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
      const auto [name, rest] = llvm::StringRef(line).split(' ');
      int64_t number = 0;
      if (rest.trim().split(' ').first.getAsInteger(10, number)) continue;
      numbers_[name.rtrim(':').str()] = number;
    }
  }
  std::optional<int64_t> find(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string, int64_t> numbers_;
};

/// Counts what the kernel can take back (caches), and swap: pinned memory cannot lie there, but
/// what makes room for it can.
Bytes freeOnMachine(const MemoryFiles& files, Bytes all) {
  const NumberedLines lines(files.machine);
  const std::optional<int64_t> available = lines.find("MemAvailable");
  if (!available) return all;
  return std::min(all, Bytes((*available + lines.find("SwapFree").value_or(0)) * 1024));
}

/// A group's caches of files are given back before it is out of memory; its shared memory is not.
Bytes freeInGroup(const MemoryFiles& files, Bytes limit) {
  std::ifstream file(files.groups + "/memory.current");
  int64_t used = 0;
  if (!(file >> used)) return limit;
  const NumberedLines parts(files.groups + "/memory.stat");
  const int64_t cached = parts.find("file").value_or(0) - parts.find("shmem").value_or(0) +
                         parts.find("slab_reclaimable").value_or(0);
  return std::clamp(limit - Bytes(used - cached), Bytes(0), limit);
}

std::string ofText(Bytes free, Bytes all) {
  return free < all ? formatBytes(free) + " free of " + formatBytes(all) : formatBytes(all);
}

}  // namespace

Bytes machineMemory() {
  return Bytes(static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) *
               static_cast<int64_t>(::sysconf(_SC_PAGE_SIZE)));
}

std::optional<Bytes> groupLimit(const MemoryFiles& files) {
  std::ifstream file(files.groups + "/memory.max");
  if (!file) file.open(files.groups + "/memory/memory.limit_in_bytes");  // the first version's
  std::string text;
  int64_t bytes = 0;
  if (!(file >> text) || llvm::StringRef(text).getAsInteger(10, bytes)) return std::nullopt;
  // The first version says a number beyond all memory for "no limit".
  if (bytes <= 0 || Bytes(bytes) >= Bytes(int64_t{1} << 60)) return std::nullopt;
  return Bytes(bytes);
}

UsableMemory usableMemory(const MemoryFiles& files) {
  const Bytes all = machineMemory();
  const Bytes free = freeOnMachine(files, all);
  const std::optional<Bytes> limit = groupLimit(files);
  if (limit && *limit < all) {
    const Bytes allowed = freeInGroup(files, *limit);
    if (allowed < free) {
      return {allowed, "this process's control group has " + ofText(allowed, *limit)};
    }
  }
  return {free, "this machine has " + ofText(free, all)};
}

}  // namespace stowage::tools
