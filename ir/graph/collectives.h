// SPDX-License-Identifier: Apache-2.0
//
// Collectives: nodes in which all ranks take part, and what they bring each of them. They run on a
// stream of their own, so that they need not wait for compute that they do not depend on. They move
// bytes and compute nothing: what comes from others is added by a node of compute.
#ifndef STOWAGE_IR_GRAPH_COLLECTIVES_H_
#define STOWAGE_IR_GRAPH_COLLECTIVES_H_

#include <llvm/ADT/StringRef.h>

#include "ir/graph/graph.h"

namespace stowage::ir {

inline constexpr llvm::StringLiteral kAllGather = "stowage.all_gather.default";
inline constexpr llvm::StringLiteral kAllToAll = "stowage.all_to_all.default";
/// No collective: adds what an all_to_all has received.
inline constexpr llvm::StringLiteral kAddParts = "stowage.add_parts.default";

/// A gather or an all_to_all, which a step of ranks has (runtime/collectives).
bool isCollective(const Node& node);

/// Does it bring all parts of all ranks together? Its result is then its operand's parts, and
/// a recompute gives the same bits.
bool isGather(const Node& node);

/// Bytes that a rank receives from all others together.
Bytes receivedBytes(const Graph& graph, const Node& collective);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_GRAPH_COLLECTIVES_H_
