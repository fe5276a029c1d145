// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "runtime/machine/control_group.h"
#include "runtime/machine/numbered_lines.h"

namespace stowage::runtime {

namespace {

NumberedLines readMachine(const std::string& root) { return NumberedLines(root + "/proc/meminfo"); }

/// Counts what the kernel can take back (caches), and swap: pinned memory cannot lie there, but
/// what makes room for it can.
Bytes freeOnMachine(const std::string& root, Bytes all) {
  const NumberedLines lines = readMachine(root);
  const std::optional<int64_t> available = lines.find("MemAvailable");
  if (!available) return all;
  return std::min(all, Bytes((*available + lines.find("SwapFree").value_or(0)) * 1024));
}

std::string ofText(Bytes free, Bytes all) {
  return free < all ? formatBytes(free) + " free of " + formatBytes(all) : formatBytes(all);
}

}  // namespace

Bytes machineMemory(const std::string& root) {
  if (const auto all = readMachine(root).find("MemTotal")) return Bytes(*all * 1024);
  return Bytes(static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) *
               static_cast<int64_t>(::sysconf(_SC_PAGE_SIZE)));
}

UsableMemory usableMemory(const std::string& root) {
  const Bytes all = machineMemory(root);
  const Bytes free = freeOnMachine(root, all);
  const std::optional<GroupMemory> group = tightestGroup(root);
  if (group && group->free < free) {
    return {group->free, "this process's control group has " + ofText(group->free, group->limit)};
  }
  return {free, "this machine has " + ofText(free, all)};
}

}  // namespace stowage::runtime
