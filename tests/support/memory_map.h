// SPDX-License-Identifier: Apache-2.0
//
// What a process has mapped and what of it is in memory, as the kernel says it.
#ifndef STOWAGE_TESTS_SUPPORT_MEMORY_MAP_H_
#define STOWAGE_TESTS_SUPPORT_MEMORY_MAP_H_

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace stowage::tests {

struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool isOpen = false;   // may be read and written
  int64_t resident = 0;  // bytes in memory
};

/// Of this process, or another one's number; by address. Empty for a process that is over.
inline std::vector<Mapping> readMappings(const std::string& process = "self") {
  std::vector<Mapping> mappings;
  std::ifstream file("/proc/" + process + "/smaps");
  std::string line;
  while (std::getline(file, line)) {
    unsigned long begin = 0;  // NOLINT: sscanf's type
    unsigned long end = 0;    // NOLINT
    char rights[8] = {};      // NOLINT
    long kilobytes = 0;       // NOLINT
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &begin, &end, rights) == 3) {
      mappings.push_back({begin, end, std::string(rights).starts_with("rw"), 0});
    } else if (std::sscanf(line.c_str(), "Rss: %ld kB", &kilobytes) == 1) {
      mappings.back().resident = kilobytes * 1024;
    }
  }
  return mappings;
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_MEMORY_MAP_H_
