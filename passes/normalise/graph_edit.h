// SPDX-License-Identifier: Apache-2.0
//
// What normalising passes share: new graphs from changed node lists, and which nodes keep their
// place among each other whatever the storages say. The graph itself is never edited.
#ifndef STOWAGE_PASSES_NORMALISE_GRAPH_EDIT_H_
#define STOWAGE_PASSES_NORMALISE_GRAPH_EDIT_H_

#include <llvm/ADT/ArrayRef.h>

#include <vector>

#include "ir/graph/graph.h"

namespace stowage::passes {

/// The same storages and values with these nodes instead of the old ones.
ir::Graph withNodes(const ir::Graph& graph, std::vector<ir::Node> nodes);

/// The same nodes in another order: `order` holds every node once.
ir::Graph withOrder(const ir::Graph& graph, llvm::ArrayRef<ir::NodeId> order);

/// Leaves out what no node names any more: storages that only the step itself made, and views of
/// such storages. Returns an equal graph when there is nothing to leave out. `removed` storages and
/// values are what the sizes of old and new graph tell.
ir::Graph withoutUnused(const ir::Graph& graph);

/// Does the op speak with other ranks?
bool isCollective(llvm::StringRef op);

/// True for nodes that must stay in order among themselves, beyond what storages order: those that
/// draw random numbers, collectives, and ops that the op table does not know.
bool keepsOrder(const ir::Node& node);

/// Made by the step and gone with it: no state, no input, nothing that is delivered.
bool isLocal(const ir::Storage& storage);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_GRAPH_EDIT_H_
