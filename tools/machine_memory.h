// SPDX-License-Identifier: Apache-2.0
//
// How much memory this machine has.
#ifndef STOWAGE_TOOLS_MACHINE_MEMORY_H_
#define STOWAGE_TOOLS_MACHINE_MEMORY_H_

#include <unistd.h>

#include "ir/units.h"

namespace stowage::tools {

inline Bytes machineMemory() {
  return Bytes(static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) *
               static_cast<int64_t>(::sysconf(_SC_PAGE_SIZE)));
}

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MACHINE_MEMORY_H_
