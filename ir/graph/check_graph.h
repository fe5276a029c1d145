// SPDX-License-Identifier: Apache-2.0
//
// Invariants of a graph on its own: ids in range, views inside their storages, unique names, every
// version read was written before, roles and persistence that go together, whole-writes that are
// whole. Broken IR is data, not a programming error: all violations come back as notes of one
// kInvalidIr error.
#ifndef STOWAGE_IR_GRAPH_CHECK_GRAPH_H_
#define STOWAGE_IR_GRAPH_CHECK_GRAPH_H_

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::ir {

/// A host storage is a seed, a step count, a learning rate: nothing that would need planning.
inline constexpr Bytes kMaxHostStorageBytes{4096};

/// Later groups of invariants are looked at only when the earlier ones hold: names and types, then
/// references, then versions.
Error checkGraph(const Graph& graph);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_GRAPH_CHECK_GRAPH_H_
