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

/// The most memory that a process can allocate now: what is free, and caches that the kernel gives
/// back. `source` says for messages where the number comes from.
struct UsableMemory {
  Bytes bytes;
  std::string source;  // "this machine has 21.50 GiB free of 24.00 GiB"
};
/// The smaller of what the machine and the control group have free; all memory if neither says.
UsableMemory usableMemory(const MemoryFiles& files = {});

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MACHINE_MACHINE_MEMORY_H_
