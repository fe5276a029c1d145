// SPDX-License-Identifier: Apache-2.0
#include "ir/base/format_apart.h"

namespace stowage {

std::pair<std::string, std::string> formatApart(Bytes a, Bytes b) {
  const auto exact = [](Bytes bytes) { return std::to_string(bytes.value()) + " B"; };
  if (a != b && formatBytes(a) == formatBytes(b)) return {exact(a), exact(b)};
  return {formatBytes(a), formatBytes(b)};
}

}  // namespace stowage
