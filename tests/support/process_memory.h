// SPDX-License-Identifier: Apache-2.0
//
// Memory of this process, as the kernel counts it; and a kernel that gives no more of it.
#ifndef STOWAGE_TESTS_SUPPORT_PROCESS_MEMORY_H_
#define STOWAGE_TESTS_SUPPORT_PROCESS_MEMORY_H_

#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace stowage::tests {

/// Of /proc/self/status, in bytes: "VmRSS" is what is in memory, "VmData" what may be written.
inline int64_t processMemory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != name + ":") continue;
    int64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return -1;
}

/// While it lives, the kernel refuses memory beyond what the process has and `more` bytes.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t more) {
    getrlimit(RLIMIT_DATA, &before_);
    const rlimit tight{static_cast<rlim_t>(processMemory("VmData") + more), before_.rlim_max};
    setrlimit(RLIMIT_DATA, &tight);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_DATA, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_PROCESS_MEMORY_H_
