// SPDX-License-Identifier: Apache-2.0
#include "ir/costs/unplanned_peak.h"

#include <algorithm>
#include <vector>

#include "ir/graph/liveness.h"

namespace stowage::ir {

Bytes sumReserved(llvm::ArrayRef<ReservedRegion> regions, int64_t alignBytes) {
  Bytes sum;
  for (const ReservedRegion& region : regions) sum += roundUp(region.bytes, alignBytes);
  return sum;
}

Bytes computeUnplannedPeak(const Graph& graph, const Target& target, const NodeCosts& costs) {
  std::vector<Bytes> temporaries;
  for (const OpCost& cost : costs.nodes) temporaries.push_back(cost.temporary);
  const std::vector<int64_t> bytes = computeKeepAllBytes(graph, target.alignBytes, temporaries);
  const Bytes peak(bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()));
  return peak + sumReserved(target.reserved, target.alignBytes);
}

}  // namespace stowage::ir
