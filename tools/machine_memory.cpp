// SPDX-License-Identifier: Apache-2.0
#include "tools/machine_memory.h"

#include <llvm/ADT/StringRef.h>
#include <unistd.h>

#include <fstream>

namespace stowage::tools {

Bytes machineMemory() {
  return Bytes(static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) *
               static_cast<int64_t>(::sysconf(_SC_PAGE_SIZE)));
}

std::optional<Bytes> groupLimit(const std::string& root) {
  std::ifstream file(root + "/memory.max");
  if (!file) file.open(root + "/memory/memory.limit_in_bytes");  // the first version's
  std::string text;
  int64_t bytes = 0;
  if (!(file >> text) || llvm::StringRef(text).getAsInteger(10, bytes)) return std::nullopt;
  // The first version says a number beyond all memory for "no limit".
  if (bytes <= 0 || Bytes(bytes) >= Bytes(int64_t{1} << 60)) return std::nullopt;
  return Bytes(bytes);
}

UsableMemory usableMemory(std::optional<Bytes> group) {
  const Bytes all = machineMemory();
  if (group && *group < all) {
    return {*group, "this process's control group allows " + formatBytes(*group)};
  }
  return {all, "this machine has " + formatBytes(all)};
}

}  // namespace stowage::tools
