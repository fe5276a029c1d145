// SPDX-License-Identifier: Apache-2.0
//
// Does each call of a graph do what the graph says it does? For graphs that come from files, which
// say themselves what an op takes, gives and writes. Each call is made on tensors without memory
// and compared: arguments with the op's schema, operands with what the op asks (operand_rules.h,
// libtorch's own checks), writes with the schema's, results with what the op returns. How fresh
// results are laid out may differ between machines, so that is left to the run, which compares it.
// Calls are known by the op's name alone: nothing that the file says of an op is believed.
// Not here: the graph's own invariants (ir/graph/check_graph.h); values that are indices.
#ifndef STOWAGE_RUNTIME_CAPTURE_LOADED_CALL_CHECKS_H_
#define STOWAGE_RUNTIME_CAPTURE_LOADED_CALL_CHECKS_H_

#include <optional>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "runtime/capture/loaded/permitted_calls.h"

namespace stowage::runtime {

/// Ops that no graph from a file may call (`findForbiddenCall`) are left out: what they would do is
/// not asked. `target`: that the graph was captured for. Errors: kOutOfDeviceMemory and the like.
ir::Expected<std::optional<WrongCall>> findWrongCall(const ir::Graph& graph,
                                                     const ir::Target& target);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_LOADED_CALL_CHECKS_H_
