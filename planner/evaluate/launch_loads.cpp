// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/launch_loads.h"

namespace stowage::planner {

std::vector<int64_t> computeLoads(const GapTable& table, const Expansion& expansion) {
  const auto period = static_cast<int64_t>(expansion.launches.size());
  std::vector<int64_t> change(2 * expansion.launches.size() + 1, 0);
  int64_t always = 0;
  for (const LiveRange& range : expansion.liveRanges) {
    const int64_t bytes = table.bytes(range.storage);
    if (range.isHost) continue;
    if (range.always) always += bytes;
    if (range.always || range.begin < 0) continue;
    // Whoever takes the bytes over counts them from there on.
    const int64_t end = range.end + (range.takenBy >= 0 ? 0 : 1);
    change[static_cast<size_t>(range.begin)] += bytes;
    change[static_cast<size_t>(end)] -= bytes;
  }
  std::vector<int64_t> loads(expansion.launches.size(), always);
  int64_t held = 0;
  for (size_t i = 0; i < change.size(); ++i) {
    held += change[i];
    loads[i % static_cast<size_t>(period)] += i < 2 * static_cast<size_t>(period) ? held : 0;
  }
  for (size_t i = 1; i < loads.size(); ++i) {
    loads[i] += table.temporary(expansion.launches[i].node.index());
  }
  return loads;
}

}  // namespace stowage::planner
