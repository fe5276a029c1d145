// SPDX-License-Identifier: Apache-2.0
//
// Checks a graph on its own: ids in range, views inside their storages, unique names, every version
// written before it is read, persistence that the role allows, whole writes that cover the storage.
// Broken IR is data, not a programming error: all violations come back as notes of one kInvalidIr
// error.
#ifndef STOWAGE_IR_GRAPH_CHECK_GRAPH_H_
#define STOWAGE_IR_GRAPH_CHECK_GRAPH_H_

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::ir {

/// Largest storage on the host: a seed, a step count, a learning rate. Not worth planning.
inline constexpr Bytes kMaxHostStorageBytes{4096};

/// Later groups of invariants are looked at only when the earlier ones hold: names and types, then
/// references, then versions.
Error checkGraph(const Graph& graph);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_GRAPH_CHECK_GRAPH_H_
