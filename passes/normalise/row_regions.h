// SPDX-License-Identifier: Apache-2.0
//
// Finds regions of connected nodes that can run block of rows by block of rows, and says what a
// region reads, leaves and keeps for itself. A region pays if what it keeps for itself, or writes
// over an operand that dies, is large beside what single nodes of the step touch, and if its own
// nodes are among those that touch most: a step needs what one node touches at each budget.
#ifndef STOWAGE_PASSES_NORMALISE_ROW_REGIONS_H_
#define STOWAGE_PASSES_NORMALISE_ROW_REGIONS_H_

#include <vector>

#include "ir/graph/graph.h"
#include "passes/normalise/row_nodes.h"

namespace stowage::passes {

struct RowMember {
  ir::NodeId node;
  RowNode rows;
};

/// A storage that members make and others read.
struct LeavingStorage {
  ir::StorageId storage;
  /// The operand whose rows it takes, one block after the other. Invalid: it has its own bytes.
  ir::StorageId place;
};

struct RowRegion {
  int64_t rows = 0;
  int64_t unit = 1;                  // a block starts at a multiple of so many rows
  std::vector<RowMember> members;    // in order; the rest is about nodes between first and last:
  std::vector<ir::NodeId> before;    // need nothing of the region
  std::vector<ir::NodeId> standIns;  // of `before`: read the shape of a loss that comes later
  std::vector<ir::NodeId> after;
  std::vector<LeavingStorage> leaving;
  Bytes saved;  // of what only members touch, and of storages that take another's place
};

struct RowRegions {
  /// In order of the graph; no two have nodes in between in common.
  std::vector<RowRegion> regions;
  int64_t leftWhole = 0;  // that would pay, but have no row at which a second block may start
};
/// Regions that pay.
RowRegions findRowRegions(const ir::Graph& graph);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_ROW_REGIONS_H_
