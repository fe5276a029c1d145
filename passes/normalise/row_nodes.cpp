// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/row_nodes.h"

#include <algorithm>

namespace stowage::passes {

namespace {

// Kernels choose vector loads by the address of a row; storages are aligned to this.
constexpr int64_t kStorageAlignment = 512;
// What one thread block of an elementwise kernel works on divides this.
constexpr int64_t kElementsOfAKernelBlock = 4096;
constexpr int64_t kReductionNone = 0;

const ir::TensorType* typeOf(const ir::Graph& graph, const ir::Argument& argument) {
  const auto* value = std::get_if<ir::ValueArg>(&argument);
  if (value == nullptr || !value->value.isValid()) return nullptr;
  return &graph.value(value->value).type;
}

bool isNone(const ir::Argument& argument) { return std::holds_alternative<ir::NoneArg>(argument); }

std::optional<int64_t> integerOf(const ir::Argument& argument) {
  const auto* number = std::get_if<int64_t>(&argument);
  return number == nullptr ? std::nullopt : std::optional<int64_t>(*number);
}

bool isOne(const ir::Argument& argument) {
  const auto* real = std::get_if<double>(&argument);
  return integerOf(argument) == 1 || (real != nullptr && *real == 1.0);
}

/// The one result of a node that changes nothing and reads no lists of tensors.
const ir::TensorType* onlyResult(const ir::Graph& graph, const ir::Node& node) {
  if (!node.writes.empty() || node.results.size() != 1 || !node.results[0].isValid()) {
    return nullptr;
  }
  for (const ir::Argument& argument : node.args) {
    if (std::holds_alternative<ir::ValueList>(argument)) return nullptr;
  }
  return &graph.value(node.results[0]).type;
}

bool isComplex(const ir::TensorType& type) {
  return type.dtype == ir::DType::kC64 || type.dtype == ir::DType::kC128;
}

enum class Share : uint8_t { kRows, kWhole, kWithoutOnes, kNeither };

/// Of an operand that is broadcast to `result`, whose first `rowDimensions` are rows.
Share findShare(const ir::TensorType& operand, const ir::TensorType& result, size_t rowDimensions) {
  const size_t rank = operand.sizes.size();
  const size_t resultRank = result.sizes.size();
  if (rank > resultRank) return Share::kNeither;
  if (rank <= resultRank - rowDimensions) return Share::kWhole;
  const size_t leading = rank - (resultRank - rowDimensions);
  const bool hasOnes =
      std::all_of(operand.sizes.begin(), operand.sizes.begin() + static_cast<ptrdiff_t>(leading),
                  [](int64_t size) { return size == 1; });
  if (hasOnes && resultRank > rowDimensions) return Share::kWithoutOnes;
  if (rank < resultRank || !operand.isContiguous()) return Share::kNeither;
  return std::equal(operand.sizes.begin(),
                    operand.sizes.begin() + static_cast<ptrdiff_t>(rowDimensions),
                    result.sizes.begin())
             ? Share::kRows
             : Share::kNeither;
}

std::optional<RowNode> findElementwise(const ir::Graph& graph, const ir::Node& node,
                                       const ir::RowOp& op, int64_t rows) {
  const ir::TensorType* result = onlyResult(graph, node);
  if (result == nullptr || isComplex(*result)) return std::nullopt;
  const std::optional<size_t> dimensions = findRowDimensions(*result, rows);
  if (!dimensions) return std::nullopt;
  RowNode found{.kind = op.kind, .resultDimensions = *dimensions};
  bool exact = op.exact;
  if (op.factor >= 0) {
    const auto factor = static_cast<size_t>(op.factor);
    exact = factor >= node.args.size() || isOne(node.args[factor]);
  }
  if (!exact) {
    // The CPU cuts its loops by the number of threads and elements; a GPU by elements alone.
    if (graph.provenance().device != "cuda") return std::nullopt;
    found.alignBytes = kStorageAlignment;
    found.alignElements = kElementsOfAKernelBlock;
  }
  bool cutsAny = false;
  for (const ir::Argument& argument : node.args) {
    found.rowDimensions.push_back(0);
    found.droppedDimensions.push_back(0);
    const ir::TensorType* type = typeOf(graph, argument);
    if (type == nullptr) continue;
    const Share share = findShare(*type, *result, *dimensions);
    if (share == Share::kNeither) return std::nullopt;
    if (share == Share::kWhole) continue;
    if (share == Share::kWithoutOnes) {
      found.droppedDimensions.back() = type->sizes.size() + *dimensions - result->sizes.size();
      continue;
    }
    found.rowDimensions.back() = *dimensions;
    cutsAny = true;
  }
  return cutsAny ? std::optional<RowNode>(std::move(found)) : std::nullopt;
}

std::optional<RowNode> findLastDim(const ir::Graph& graph, const ir::Node& node,
                                   const ir::RowOp& op, int64_t rows) {
  const ir::TensorType* result = onlyResult(graph, node);
  const auto dimension = static_cast<size_t>(op.dimension);
  if (result == nullptr || dimension >= node.args.size()) return std::nullopt;
  const std::optional<size_t> dimensions = findRowDimensions(*result, rows);
  const auto rank = static_cast<int64_t>(result->sizes.size());
  const std::optional<int64_t> along = integerOf(node.args[dimension]);
  if (!dimensions || !along || (*along != rank - 1 && *along != -1)) return std::nullopt;
  if (static_cast<int64_t>(*dimensions) >= rank) return std::nullopt;
  RowNode found{.kind = op.kind, .resultDimensions = *dimensions, .alignBytes = kStorageAlignment};
  for (const ir::Argument& argument : node.args) {
    const ir::TensorType* type = typeOf(graph, argument);
    found.rowDimensions.push_back(type == nullptr ? 0 : *dimensions);
    if (type == nullptr) continue;
    if (type->sizes != result->sizes || !type->isContiguous()) return std::nullopt;
  }
  return found;
}

// nll_loss_forward(self, target, weight, reduction, ignore_index) -> (output, total_weight): rows
// of a matrix. Weights belong to classes, so the sum over rows cannot be made from one number a
// row.
std::optional<RowNode> findLossForward(const ir::Graph& graph, const ir::Node& node, int64_t rows) {
  if (node.args.size() != 5 || node.results.size() != 2 || !node.writes.empty() ||
      !node.results[0].isValid() || !node.results[1].isValid() || !isNone(node.args[2])) {
    return std::nullopt;
  }
  const ir::TensorType* input = typeOf(graph, node.args[0]);
  const ir::TensorType* target = typeOf(graph, node.args[1]);
  const std::optional<int64_t> reduction = integerOf(node.args[3]);
  if (input == nullptr || target == nullptr || input->sizes.size() != 2 ||
      input->sizes[0] != rows || !input->isContiguous() || target->sizes.size() != 1 ||
      target->sizes[0] != rows || !target->isContiguous() || target->dtype != ir::DType::kI64 ||
      !reduction || *reduction == kReductionNone || !integerOf(node.args[4])) {
    return std::nullopt;
  }
  return RowNode{.kind = ir::RowKind::kLossForward, .rowDimensions = {1, 1, 0, 0, 0}};
}

// nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)
std::optional<RowNode> findLossBackward(const ir::Graph& graph, const ir::Node& node,
                                        int64_t rows) {
  const ir::TensorType* result = onlyResult(graph, node);
  if (result == nullptr || node.args.size() != 7) return std::nullopt;
  const ir::TensorType* gradient = typeOf(graph, node.args[0]);
  const ir::TensorType* input = typeOf(graph, node.args[1]);
  const ir::TensorType* target = typeOf(graph, node.args[2]);
  const std::optional<int64_t> reduction = integerOf(node.args[4]);
  if (gradient == nullptr || input == nullptr || target == nullptr || !reduction ||
      result->sizes.size() != 2 || result->sizes[0] != rows || !result->isContiguous() ||
      input->sizes != result->sizes || !input->isContiguous() || target->sizes.size() != 1 ||
      !target->isContiguous()) {
    return std::nullopt;
  }
  RowNode found{.kind = ir::RowKind::kLossBackward,
                .rowDimensions = {0, 1, 1, 0, 0, 0, 0},
                .resultDimensions = 1};
  if (*reduction == kReductionNone) {
    if (gradient->sizes.size() != 1 || !gradient->isContiguous()) return std::nullopt;
    found.rowDimensions[0] = 1;
  } else if (gradient->numElements() != 1) {
    return std::nullopt;
  }
  return found;
}

}  // namespace

std::optional<size_t> findRowDimensions(const ir::TensorType& type, int64_t rows) {
  if (rows < 2 || !type.isContiguous()) return std::nullopt;
  int64_t product = 1;
  for (size_t i = 0; i < type.sizes.size() && product < rows; ++i) {
    if (type.sizes[i] == 0) return std::nullopt;
    product *= type.sizes[i];
    if (product == rows) return i + 1;
  }
  return std::nullopt;
}

ir::TensorType copyOfRows(const ir::TensorType& type, size_t rowDimensions, RowRange range) {
  ir::TensorType block{.dtype = type.dtype};
  block.sizes.push_back(range.count());
  block.sizes.append(type.sizes.begin() + static_cast<ptrdiff_t>(rowDimensions), type.sizes.end());
  block.strides = ir::contiguousStrides(block.sizes);
  return block;
}

ir::TensorType dropDimensions(const ir::TensorType& type, size_t dimensions) {
  ir::TensorType smaller = type;
  const auto end = static_cast<ptrdiff_t>(dimensions);
  smaller.sizes.erase(smaller.sizes.begin(), smaller.sizes.begin() + end);
  smaller.strides.erase(smaller.strides.begin(), smaller.strides.begin() + end);
  return smaller;
}

ir::TensorType viewRows(const ir::TensorType& type, size_t rowDimensions, RowRange range) {
  ir::TensorType block = copyOfRows(type, rowDimensions, range);
  block.offset = type.offset + range.begin * (block.numElements() / range.count());
  return block;
}

std::optional<RowNode> findRowNode(const ir::Graph& graph, const ir::Node& node, int64_t rows) {
  const ir::RowOp& op = ir::lookUpRowOp(node.op);
  switch (op.kind) {
    case ir::RowKind::kElementwise:
      return findElementwise(graph, node, op, rows);
    case ir::RowKind::kLastDim:
      return findLastDim(graph, node, op, rows);
    case ir::RowKind::kLossForward:
      return findLossForward(graph, node, rows);
    case ir::RowKind::kLossBackward:
      return findLossBackward(graph, node, rows);
    case ir::RowKind::kNone:
    case ir::RowKind::kShapeOnly:
      return std::nullopt;
  }
  return std::nullopt;
}

bool readsShapeOnly(const ir::Node& node) {
  if (ir::lookUpRowOp(node.op).kind != ir::RowKind::kShapeOnly || !node.writes.empty()) {
    return false;
  }
  size_t tensors = 0;
  ir::forEachTensorArgument(node, [&](ir::ValueId) { ++tensors; });
  return tensors == 1 && std::holds_alternative<ir::ValueArg>(node.args[0]);
}

}  // namespace stowage::passes
