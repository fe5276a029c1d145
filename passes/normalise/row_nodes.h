// SPDX-License-Identifier: Apache-2.0
//
// Whether one node may run on blocks of `rows` rows, and which of its operands are cut then. A
// tensor has so many rows if its leading dimensions multiply to that number; it must be contiguous,
// so that a block of rows is one range of bytes. Only the op table of rows and shapes count
// (ir/graph/row_ops.h). Not here: which nodes run together (row_regions.h).
#ifndef STOWAGE_PASSES_NORMALISE_ROW_NODES_H_
#define STOWAGE_PASSES_NORMALISE_ROW_NODES_H_

#include <llvm/ADT/SmallVector.h>

#include <cstdint>
#include <optional>

#include "ir/graph/graph.h"
#include "ir/graph/row_ops.h"

namespace stowage::passes {

/// A range of rows.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};

/// How many leading dimensions the rows are; none if the tensor is not contiguous or its leading
/// dimensions do not multiply to `rows`.
std::optional<size_t> findRowDimensions(const ir::TensorType& type, int64_t rows);

/// Those rows of a tensor, in place: a view of its storage. The row dimensions become one.
ir::TensorType viewRows(const ir::TensorType& type, size_t rowDimensions, RowRange range);
/// The same sizes, contiguous in a storage of their own.
ir::TensorType copyOfRows(const ir::TensorType& type, size_t rowDimensions, RowRange range);

/// The same elements without leading dimensions of size 1.
ir::TensorType dropDimensions(const ir::TensorType& type, size_t dimensions);

/// A node that may run in blocks of rows.
struct RowNode {
  ir::RowKind kind = ir::RowKind::kNone;
  /// By argument: the number of dimensions that are rows; 0: the argument is passed whole.
  llvm::SmallVector<size_t, 8> rowDimensions;
  /// By argument: leading dimensions of size 1 that a block drops, since rows are one dimension.
  llvm::SmallVector<size_t, 8> droppedDimensions;
  size_t resultDimensions = 0;  // of result 0, that are rows
  /// A block starts at a multiple of so many bytes in each operand that is cut, and of so many
  /// elements.
  int64_t alignBytes = 16;
  int64_t alignElements = 1;
};

/// None for a node that must see all rows at once, or whose bits could depend on their number.
/// Results 0 of kLossForward is not a row per row of the input; of all others it is.
std::optional<RowNode> findRowNode(const ir::Graph& graph, const ir::Node& node, int64_t rows);

/// True for a node whose results depend on the shape and the type of its operands alone.
bool readsShapeOnly(const ir::Node& node);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_ROW_NODES_H_
