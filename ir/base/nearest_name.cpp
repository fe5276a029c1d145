// SPDX-License-Identifier: Apache-2.0
#include "ir/base/nearest_name.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>

namespace stowage::ir {

std::string nearestName(const std::string& typed, const std::vector<std::string>& names) {
  const unsigned limit = static_cast<unsigned>(typed.size()) / 3 + 1;
  std::string best;
  unsigned bestDistance = limit + 1;
  for (const std::string& name : names) {
    const unsigned distance =
        llvm::StringRef(typed).edit_distance(name, /*AllowReplacements=*/true, limit);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = name;
    }
  }
  return best;
}

std::string describeUnknown(const std::string& kind, const std::string& typed,
                            const std::string& form, const std::vector<std::string>& names) {
  const std::string near = nearestName(typed, names);
  return "unknown " + kind + " '" + typed + "'" +
         (near.empty() ? "" : ", did you mean '" + near + "'?") + "; expected " + form + " " +
         llvm::join(names, ", ");
}

}  // namespace stowage::ir
