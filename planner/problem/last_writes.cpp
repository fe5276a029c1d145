// SPDX-License-Identifier: Apache-2.0
#include "planner/problem/last_writes.h"

namespace stowage::planner {

std::vector<LastWrite> findLastWrites(const GapTable& table) {
  std::vector<LastWrite> writes(table.gaps().size());
  const auto& lives = table.problem().lives;
  for (size_t i = 0; i < lives.size(); ++i) {
    const std::vector<ir::Touch>& touches = lives[i].touches;
    const ir::StorageId id(i);
    int64_t last = -1;  // touch that wrote last; of the step before at first
    for (size_t k = 0; k < touches.size() && table.problem().graph.storage(id).persistent; ++k) {
      if (touches[k].writes) last = static_cast<int64_t>(k);
    }
    int64_t shift = static_cast<int64_t>(table.nodeCount());
    for (size_t k = 0; k < touches.size(); ++k) {
      if (touches[k].writes) {
        last = static_cast<int64_t>(k);
        shift = 0;
      }
      if (last < 0) continue;
      const auto at = static_cast<size_t>(last);
      writes[table.gapIndex(id, k)] = {
          .version = static_cast<int64_t>(table.gapIndex(id, at)),
          .before = touches[k].position - touches[at].position + shift};
    }
  }
  return writes;
}

}  // namespace stowage::planner
