// SPDX-License-Identifier: Apache-2.0
//
// How much memory this machine has, and how much of it a process may use.
#ifndef STOWAGE_TOOLS_MACHINE_MACHINE_MEMORY_H_
#define STOWAGE_TOOLS_MACHINE_MACHINE_MEMORY_H_

#include <optional>
#include <string>

#include "ir/base/units.h"

namespace stowage::tools {

Bytes machineMemory();
/// Where Linux says how much memory there is.
struct MemoryFiles {
  std::string groups = "/sys/fs/cgroup";  // where control groups are mounted
  std::string machine = "/proc/meminfo";
};

/// Of the process's control group, as a container sees its own; nothing when none is stated.
std::optional<Bytes> groupLimit(const MemoryFiles& files = {});

/// What a process may use at most now, beside what is in use and cannot be given back, and where
/// that is said.
struct UsableMemory {
  Bytes bytes;
  std::string source;  // "this machine has 21.50 GiB free of 24.00 GiB"
};
/// Of machine and control group, what has less free. Where nothing tells what is free, all counts.
UsableMemory usableMemory(const MemoryFiles& files = {});

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MACHINE_MACHINE_MEMORY_H_
