// SPDX-License-Identifier: Apache-2.0
//
// How ops treat the rows of their operands: which ops give the same bits for a block of rows as
// for those rows inside the whole tensor. A row is one index into the leading dimensions. The
// table is data (row_ops.cpp) and says nothing of shapes; passes/normalise/row_nodes.h looks at
// them. An op outside the table is never run in blocks of rows.
#ifndef STOWAGE_IR_GRAPH_ROW_OPS_H_
#define STOWAGE_IR_GRAPH_ROW_OPS_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>

namespace stowage::ir {

enum class RowKind : uint8_t {
  kNone,
  kElementwise,   // operands are broadcast to the result's shape
  kLastDim,       // argument `dimension` names the dimension that it works along
  kLossForward,   // nll_loss_forward: rows, then one sum over them
  kLossBackward,  // nll_loss_backward
  kShapeOnly      // reads shape and type of argument 0, not its bytes
};

struct RowOp {
  const char* op = "";
  RowKind kind = RowKind::kNone;
  /// Each element is rounded once, so a vector lane and a scalar tail give the same bits. Without
  /// it the place of an element in the loop over all elements may matter.
  bool exact = false;
  /// Schema index of a factor (`alpha`); `exact` holds for a factor of 1 only. -1: none.
  int8_t factor = -1;
  int8_t dimension = -1;  // schema index, of kLastDim
};

/// Never fails: other ops are kNone.
const RowOp& lookUpRowOp(llvm::StringRef op);

struct RowOpView {
  const RowOp* begin_;
  const RowOp* end_;
  const RowOp* begin() const { return begin_; }
  const RowOp* end() const { return end_; }
};
/// All rows of the table, in order of name.
RowOpView allRowOps();

}  // namespace stowage::ir

#endif  // STOWAGE_IR_GRAPH_ROW_OPS_H_
