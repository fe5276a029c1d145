// SPDX-License-Identifier: Apache-2.0
//
// Which calls a graph from a file may make. Kernels trust some values without checking them:
// indices, lengths, divisors, and sizes that one operand states for another. So an op is called
// only if it is known to touch nothing but its tensors, and if its operands and results can be
// checked without running it (call_checks.h). A few calls of such ops are excluded because their
// arguments require operand values that nobody checks.
#ifndef STOWAGE_RUNTIME_CAPTURE_LOADED_PERMITTED_CALLS_H_
#define STOWAGE_RUNTIME_CAPTURE_LOADED_PERMITTED_CALLS_H_

#include <llvm/ADT/StringMap.h>

#include <optional>
#include <string>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::runtime {

/// The first call that is wrong, and what is wrong with it; the text names the node.
struct WrongCall {
  ir::NodeId node;
  ir::ErrorCode code = ir::ErrorCode::kParse;
  std::string text;
};

class PermittedOps {
 public:
  /// May a graph from a file call `op` ("aten.mm.default")? Those that the op table or a shape rule
  /// knows, of libtorch's own, whose results are found without running them; none that touch files,
  /// the network, other processes or the state of a generator.
  bool allows(llvm::StringRef op);

 private:
  llvm::StringMap<bool> known_;
};

/// The first call that may not be made; to be asked before a graph from a file is run.
std::optional<WrongCall> findForbiddenCall(const ir::Graph& graph);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_LOADED_PERMITTED_CALLS_H_
