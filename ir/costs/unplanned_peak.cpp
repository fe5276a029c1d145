// SPDX-License-Identifier: Apache-2.0
#include "ir/costs/unplanned_peak.h"

#include <algorithm>
#include <vector>

#include "ir/graph/liveness.h"

namespace stowage::ir {

Bytes computeUnplannedPeak(const Graph& graph, const Target& target, const NodeCosts& costs) {
  std::vector<Bytes> temporaries;
  for (const OpCost& cost : costs.nodes) temporaries.push_back(cost.temporary);
  const std::vector<int64_t> bytes = computeKeepAllBytes(graph, target.alignBytes, temporaries);
  Bytes peak(bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()));
  // Libraries keep their workspaces with a plan and without one.
  for (const ReservedRegion& region : target.reserved) {
    peak += roundUp(region.bytes, target.alignBytes);
  }
  return peak;
}

}  // namespace stowage::ir
