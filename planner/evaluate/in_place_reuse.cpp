// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/in_place_reuse.h"

namespace stowage::planner {

void reuseOperandsInPlace(const GapTable& table, Expansion& expansion) {
  const ir::Graph& graph = table.problem().graph;
  for (int32_t i = 1; i < expansion.launchCount(); ++i) {
    Launch& launch = expansion.launches[static_cast<size_t>(i)];
    if (launch.out.empty()) continue;
    for (const ir::StorageId from : table.inPlaceOperands(launch.node.index())) {
      if (!from.isValid()) continue;
      const ir::StorageId to = graph.value(graph.node(launch.node).results[0]).storage;
      int32_t source = -1;
      int32_t target = -1;
      for (const int32_t liveRange : launch.in) {
        if (expansion.liveRanges[static_cast<size_t>(liveRange)].storage == from)
          source = liveRange;
      }
      for (const int32_t liveRange : launch.out) {
        if (expansion.liveRanges[static_cast<size_t>(liveRange)].storage == to) target = liveRange;
      }
      if (source < 0 || target < 0) continue;
      LiveRange& dying = expansion.liveRanges[static_cast<size_t>(source)];
      const LiveRange& born = expansion.liveRanges[static_cast<size_t>(target)];
      if (dying.end != i || dying.lastWrite == i || dying.offload >= 0 || born.begin != i) continue;
      dying.takenBy = target;
      launch.takes = source;
      break;
    }
  }
}

}  // namespace stowage::planner
