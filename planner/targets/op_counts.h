// SPDX-License-Identifier: Apache-2.0
//
// What a node does, counted from its op and its tensors: floating point operations and bytes. Graph
// in, numbers out; no device takes part.
#ifndef STOWAGE_PLANNER_TARGETS_OP_COUNTS_H_
#define STOWAGE_PLANNER_TARGETS_OP_COUNTS_H_

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

#include "ir/base/units.h"
#include "ir/graph/graph.h"

namespace stowage::planner {

/// Floating point operations of a node, by its op's CostKind; 0 for ops that only move bytes.
int64_t countFlops(const ir::Graph& graph, ir::NodeId node);
/// Bytes of the distinct storages' parts that a node's tensors span, read or written once each.
Bytes countBytes(const ir::Graph& graph, ir::NodeId node);

/// The tensor arguments in order, elements of lists included.
llvm::SmallVector<ir::ValueId, 8> tensorArguments(const ir::Node& node);
int64_t bytesOfValue(const ir::Graph& graph, ir::ValueId value);
/// Arithmetic happens in the dtype of the first floating point operand.
ir::DType workDType(const ir::Graph& graph, const ir::Node& node);

/// Where an attention op has its query, and which of its truth arguments is `is_causal`.
/// `temporaryQueries`: scratch of the kernel in units of the query's bytes, from allocations
/// recorded on an H200 (32 MiB queries).
struct AttentionShape {
  const char* op;
  int query;
  int causal;
  int64_t fourths;  // work in units of b h s_q s_k d
  int64_t temporaryQueries;
};
/// Null for ops that are no fused attention.
const AttentionShape* findAttention(llvm::StringRef op);
/// Whether the causal mask leaves half of the scores. `node` has the shape's op.
bool isCausal(const ir::Node& node, const AttentionShape& shape);
/// Gradients asked for by a convolution's output_mask, without the bias'.
int64_t wantedGradients(const ir::Node& node);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_TARGETS_OP_COUNTS_H_
