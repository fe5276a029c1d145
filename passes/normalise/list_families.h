// SPDX-License-Identifier: Apache-2.0
//
// Which list ops belong together: two ops are of one family when a list of one names the same
// storages, in the same order, as a list of the other (parameters, gradients, state steps, norms).
// A family shares one partition of its elements. Decides nothing about bucket sizes.
#ifndef STOWAGE_PASSES_NORMALISE_LIST_FAMILIES_H_
#define STOWAGE_PASSES_NORMALISE_LIST_FAMILIES_H_

#include <cstdint>
#include <vector>

#include "ir/graph/graph.h"

namespace stowage::passes {

/// Number of elements if the node is a list op that may be cut, else 0.
size_t findListLength(const ir::Graph& graph, ir::NodeId node);

struct ListFamily {
  std::vector<ir::NodeId> nodes;      // that may be cut, in program order
  std::vector<int64_t> elementBytes;  // the largest tensor at each element
};

struct ListFamilies {
  std::vector<ListFamily> families;  // by their first node
  int64_t leftWhole = 0;             // list ops of more than one element that may not be cut
};

ListFamilies findListFamilies(const ir::Graph& graph);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_LIST_FAMILIES_H_
