// SPDX-License-Identifier: Apache-2.0
//
// What a recorded call takes and writes, for code that follows a value from call to call.
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_NODE_USES_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_NODE_USES_H_

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>

#include <variant>

#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

/// Looks at its tensor's shape, not at its values.
inline bool readsOnlyShape(const TracedNode& node) {
  const llvm::StringRef op = node.op->name;
  return op.contains("_like.") || op.startswith("aten.new_");
}

/// Calls `visit(ir::ValueId)` for each tensor among the arguments, those in lists included.
template <typename Visit>
void forEachArgument(const TracedNode& node, Visit visit) {
  for (const ir::Argument& argument : node.args) {
    if (const auto* value = std::get_if<ir::ValueArg>(&argument)) visit(value->value);
    if (const auto* list = std::get_if<ir::ValueList>(&argument)) {
      for (const ir::ValueArg& value : *list) {
        if (value.value.isValid()) visit(value.value);
      }
    }
  }
}

/// Does the call make the storage, or write it in place?
inline bool writes(const StepTrace& step, const TracedNode& node, StorageKey key) {
  const auto isIt = [&](ir::ValueId id) { return id.isValid() && step.tensors[id].storage == key; };
  return llvm::any_of(node.results, isIt) ||
         llvm::any_of(node.writes, [&](const auto& write) { return isIt(write.value); });
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_NODE_USES_H_
