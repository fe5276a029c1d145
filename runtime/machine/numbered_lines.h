// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a file of the kernel's with lines "name: 12 kB" or "name 12".
#ifndef STOWAGE_RUNTIME_MACHINE_NUMBERED_LINES_H_
#define STOWAGE_RUNTIME_MACHINE_NUMBERED_LINES_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <string>

namespace stowage::runtime {

class NumberedLines {
 public:
  /// A file that is not there has no lines.
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
  /// Nothing for a name that is not there.
  std::optional<int64_t> find(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string, int64_t> numbers_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MACHINE_NUMBERED_LINES_H_
