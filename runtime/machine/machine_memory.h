// SPDX-License-Identifier: Apache-2.0
//
// How much memory this machine has, and how much of it this process may use.
#ifndef STOWAGE_RUNTIME_MACHINE_MACHINE_MEMORY_H_
#define STOWAGE_RUNTIME_MACHINE_MACHINE_MEMORY_H_

#include <string>

#include "ir/base/units.h"

namespace stowage::runtime {

/// `root`, here and below: the folder that has proc/ and sys/.
Bytes machineMemory(const std::string& root = "");

/// The most memory that a process can allocate now: what is free, and caches that the kernel gives
/// back. `source` says for messages where the number comes from.
struct UsableMemory {
  Bytes bytes;
  std::string source;  // "this machine has 21.50 GiB free of 24.00 GiB"
};
/// The smaller of what the machine and the control groups have free; all memory if neither says.
UsableMemory usableMemory(const std::string& root = "");

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MACHINE_MACHINE_MEMORY_H_
