// SPDX-License-Identifier: Apache-2.0
//
// Operands whose values are indices into memory: a kernel writes wherever they point. Such a call
// is allowed only if the values are unchanged results of the op in the same graph that makes or
// checks them. Examples: max pooling's indices go into its backward; the classes of a loss go
// through the loss before its backward.
// Not here: ops that look at such values themselves (gather, embedding, index_put).
#ifndef STOWAGE_RUNTIME_CAPTURE_LOADED_INDEX_SOURCES_H_
#define STOWAGE_RUNTIME_CAPTURE_LOADED_INDEX_SOURCES_H_

#include <llvm/ADT/StringRef.h>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::runtime {

/// Does `op` take an operand of that kind?
bool takesIndices(llvm::StringRef op);
/// Errors: kParse, without the node's name.
ir::Error checkIndexSources(const ir::Graph& graph, ir::NodeId node);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_LOADED_INDEX_SOURCES_H_
