// SPDX-License-Identifier: Apache-2.0
#include "planner/flow/step_slots.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace stowage::planner {

namespace {

constexpr int64_t kStarvedPart = 4;  // of the slots: fewer for all but the longest nodes are few

/// By node: the time by which the step is cut. That of nodes longer than a slot is cut to a slot
/// where they would leave the others few slots.
std::vector<int64_t> cuttingTimes(const GapTable& table, int32_t most) {
  std::vector<int64_t> times;
  int64_t total = 0;
  for (size_t i = 0; i < table.nodeCount(); ++i) {
    times.push_back(table.nodeTime(i));
    total += times.back();
  }
  std::vector<int64_t> longest = times;
  std::sort(longest.begin(), longest.end(), std::greater<>());
  int64_t left = total;  // of the nodes that are no longer than a slot
  int64_t slots = most;
  for (const int64_t time : longest) {
    if (slots <= 1 || time <= left / slots) break;
    left -= time;
    --slots;
  }
  if (left >= total / kStarvedPart) return times;
  const int64_t slot = std::max<int64_t>(left / slots, 1);
  for (int64_t& time : times) time = std::min(time, slot);
  return times;
}

}  // namespace

int32_t StepSlots::slotAt(int64_t position) const {
  const int64_t nodes = nodeCount();
  return slotOf[static_cast<size_t>((position % nodes + nodes) % nodes)];
}

StepSlots cutStep(const GapTable& table, const std::vector<int64_t>& loads, int32_t most) {
  StepSlots slots;
  const std::vector<int64_t> times = cuttingTimes(table, most);
  const int64_t total = std::accumulate(times.begin(), times.end(), int64_t{0});
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
    before += times[i];
    slots.slotOf.push_back(slots.count() - 1);
  }
  return slots;
}

}  // namespace stowage::planner
