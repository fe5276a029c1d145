// SPDX-License-Identifier: Apache-2.0
//
// A node's call, prepared: the op's handle and its argument stack, made once from the graph's
// arguments by the op's schema. A launch copies the stack, puts the step's scalars in and calls
// boxed; no argument is built while steps run.
#ifndef STOWAGE_RUNTIME_TORCH_OP_CALL_H_
#define STOWAGE_RUNTIME_TORCH_OP_CALL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/executor/scalar_feed.h"

namespace stowage::runtime {

/// Where a step scalar goes: an argument, an element of a list argument, or the tensor that a
/// wrapped number is.
struct ScalarSlot {
  size_t argument = 0;
  int32_t element = -1;  // -1: the argument itself
  ir::ScalarId scalar;
};

struct OpCall {
  c10::OperatorHandle op;
  std::vector<c10::IValue> stack;
  std::vector<ScalarSlot> scalars;
};

/// The tensor that stands for a value, for ever or until the call is prepared again.
using TensorOf = llvm::function_ref<at::Tensor(ir::ValueId)>;

/// How a node is called: as captured, or in its op's replay form, which is given undefined tensors
/// for what the node writes in place (ir/graph/op_table.h).
enum class CallForm : uint8_t { kAsCaptured, kReplay };

/// Trailing arguments that are left out get the schema's defaults. Errors: kUnsupported (no such
/// op), kInvalidIr naming node and argument.
ir::Expected<OpCall> prepareCall(const ir::Graph& graph, ir::NodeId node, CallForm form,
                                 TensorOf tensorOf);
/// The same, as captured, for a node of no graph yet. It takes no step scalars. Errors name the
/// argument alone.
ir::Expected<OpCall> prepareCall(const ir::Node& node, TensorOf tensorOf);

/// The stack for one launch. `scalars` by ScalarId; may be empty when the call takes none. Wrapped
/// numbers are changed in place, so a call is launched by one thread at a time.
std::vector<c10::IValue> makeStack(const OpCall& call, llvm::ArrayRef<ScalarValue> scalars);

/// Calls `visit(result)` for every tensor that a finished call left on the stack, in the order of
/// Node::results; undefined tensors included.
void forEachResult(const std::vector<c10::IValue>& stack,
                   llvm::function_ref<void(const at::Tensor&)> visit);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_OP_CALL_H_
