// SPDX-License-Identifier: Apache-2.0
//
// Operands whose values are places in memory: a kernel that is given them writes where they say.
// Such a call is let through only where the values come from the op that makes them or have passed
// the op that looks at them, in the same graph, unchanged: what max pooling returned goes into its
// backward, the classes of a loss into the loss before its backward.
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
