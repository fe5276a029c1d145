// SPDX-License-Identifier: Apache-2.0
//
// Does each call of a graph do what the graph says it does? For graphs that come from files, which
// say themselves what an op takes, gives and writes. Each call is made on tensors without memory
// and compared: arguments with the op's schema, operands with what the op asks (operand_rules.h,
// libtorch's own checks), writes with the schema's, results with what the op returns. How fresh
// results are laid out may differ between machines, so that is left to the run, which compares it.
// Calls are known by the op's name alone: nothing that the file says of an op is believed.
// Not here: the graph's own invariants (ir/check_graph.h); values that are indices.
#ifndef STOWAGE_RUNTIME_CAPTURE_LOADED_CALL_CHECKS_H_
#define STOWAGE_RUNTIME_CAPTURE_LOADED_CALL_CHECKS_H_

#include <optional>

#include "ir/error.h"
#include "ir/graph.h"
#include "ir/target.h"

namespace stowage::runtime {

/// The first call that is wrong, and what is wrong with it; the text names the node.
struct WrongCall {
  ir::NodeId node;
  ir::ErrorCode code = ir::ErrorCode::kParse;
  std::string text;
};

/// Ops that no graph from a file may call (`findForbiddenCall`) are left out: what they would do is
/// not asked. `target`: that the graph was captured for. Errors: kOutOfDeviceMemory and the like.
ir::Expected<std::optional<WrongCall>> findWrongCall(const ir::Graph& graph,
                                                     const ir::Target& target);

/// May a graph from a file call `op` ("aten.mm.default")? Those that the op table or a rule of ours
/// knows, of libtorch's own; none that touch files, the network, other processes or the state of a
/// generator.
bool mayBeCalled(llvm::StringRef op);
/// The first call of an op that may not; to be asked before a graph from a file is run.
std::optional<WrongCall> findForbiddenCall(const ir::Graph& graph);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_LOADED_CALL_CHECKS_H_
