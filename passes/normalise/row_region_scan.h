// SPDX-License-Identifier: Apache-2.0
//
// From connected candidates to one legal region: candidates that a node outside stands between are
// left for another region, nodes in between go before or after the blocks, and storages are sorted
// into those that leave the region and those that only it touches.
#ifndef STOWAGE_PASSES_NORMALISE_ROW_REGION_SCAN_H_
#define STOWAGE_PASSES_NORMALISE_ROW_REGION_SCAN_H_

#include <vector>

#include "passes/normalise/row_regions.h"

namespace stowage::passes {

struct RowScan {
  RowRegion region;             // may have no members
  std::vector<RowMember> left;  // not in it; never all of the candidates
};

/// `candidates` in order of the graph, at least one.
RowScan scanRegion(const ir::Graph& graph, int64_t rows, const std::vector<RowMember>& candidates);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_ROW_REGION_SCAN_H_
