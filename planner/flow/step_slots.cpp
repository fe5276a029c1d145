// SPDX-License-Identifier: Apache-2.0
#include "planner/flow/step_slots.h"

#include <algorithm>

namespace stowage::planner {

int32_t StepSlots::slotAt(int64_t position) const {
  const int64_t nodes = nodeCount();
  return slotOf[static_cast<size_t>((position % nodes + nodes) % nodes)];
}

StepSlots cutStep(const GapTable& table, const std::vector<int64_t>& loads, int32_t most) {
  StepSlots slots;
  int64_t total = 0;
  for (size_t i = 0; i < table.nodeCount(); ++i) total += table.nodeTime(i);
  int64_t before = 0;
  int64_t part = -1;
  for (size_t i = 0; i < table.nodeCount(); ++i) {
    const auto node = static_cast<int64_t>(i);
    // Steps without times are cut by nodes.
    const __int128 share =
        total > 0 ? static_cast<__int128>(before) * most / total
                  : static_cast<__int128>(node) * most / static_cast<int64_t>(table.nodeCount());
    const int64_t own = std::min<int64_t>(static_cast<int64_t>(share), most - 1);
    if (own != part) {
      slots.first.push_back(node);
      slots.widest.push_back(node);
      slots.time.push_back(0);
      slots.load.push_back(loads[i]);
      part = own;
    }
    if (loads[i] > slots.load.back()) {
      slots.load.back() = loads[i];
      slots.widest.back() = node;
    }
    slots.time.back() += table.nodeTime(i);
    before += table.nodeTime(i);
    slots.slotOf.push_back(slots.count() - 1);
  }
  return slots;
}

}  // namespace stowage::planner
