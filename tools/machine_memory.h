// SPDX-License-Identifier: Apache-2.0
//
// How much memory this machine has, and how much of it a process may use.
#ifndef STOWAGE_TOOLS_MACHINE_MEMORY_H_
#define STOWAGE_TOOLS_MACHINE_MEMORY_H_

#include <optional>
#include <string>

#include "ir/units.h"

namespace stowage::tools {

Bytes machineMemory();
/// Of the process's control group, as a container sees its own (`root`: where these are mounted);
/// nothing when none is stated.
std::optional<Bytes> groupLimit(const std::string& root = "/sys/fs/cgroup");

/// What a process may use at most, and where that is said.
struct UsableMemory {
  Bytes bytes;
  std::string source;  // "this machine has 24.00 GiB"
};
UsableMemory usableMemory(std::optional<Bytes> group = groupLimit());

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MACHINE_MEMORY_H_
