// SPDX-License-Identifier: Apache-2.0
//
// The table, in order of name (checked when this file is compiled). Not in it, on purpose:
//   - sums and means, also over other dimensions than the rows': on a GPU the order of additions
//     depends on how many results there are; on the CPU it depends on how threads share them.
//   - norms whose backward sums over rows, matrix products, random draws, in-place ops.
// `exact` leaves one thing open: on the CPU the bits of a NaN in 16 bits differ between the vector
// body of a loop and its tail. A NaN stays a NaN.
// `lastDim`: the kernels treat each row by itself, in an order that follows from the row's length
// and its address modulo 512 bytes.
#include "ir/graph/row_ops.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace stowage::ir {

namespace {

constexpr RowOp exact(const char* op, int8_t factor = -1) {
  return {.op = op, .kind = RowKind::kElementwise, .exact = true, .factor = factor};
}
// More than one rounding, or a function that vector and scalar code compute in different ways.
constexpr RowOp rounded(const char* op) { return {.op = op, .kind = RowKind::kElementwise}; }
constexpr RowOp lastDim(const char* op, int8_t dimension) {
  return {.op = op, .kind = RowKind::kLastDim, .dimension = dimension};
}
constexpr RowOp shapeOnly(const char* op) { return {.op = op, .kind = RowKind::kShapeOnly}; }

// clang-format off
constexpr RowOp kRows[] = {
    lastDim("aten._log_softmax.default", 1),
    lastDim("aten._log_softmax_backward_data.default", 2),
    lastDim("aten._softmax.default", 1),
    lastDim("aten._softmax_backward_data.default", 2),
    exact("aten._to_copy.default"),
    exact("aten.abs.default"),
    exact("aten.add.Scalar", 2),
    exact("aten.add.Tensor", 2),
    rounded("aten.addcdiv.default"),
    rounded("aten.addcmul.default"),
    exact("aten.bitwise_and.Scalar"),
    exact("aten.bitwise_and.Tensor"),
    exact("aten.bitwise_not.default"),
    exact("aten.bitwise_or.Scalar"),
    exact("aten.bitwise_or.Tensor"),
    exact("aten.bitwise_xor.Tensor"),
    exact("aten.ceil.default"),
    exact("aten.clamp.default"),
    exact("aten.clamp_max.default"),
    exact("aten.clamp_min.default"),
    exact("aten.clone.default"),
    rounded("aten.cos.default"),
    exact("aten.div.Scalar"),
    exact("aten.div.Tensor"),
    rounded("aten.elu.default"),
    rounded("aten.elu_backward.default"),
    shapeOnly("aten.empty_like.default"),
    exact("aten.eq.Scalar"),
    exact("aten.eq.Tensor"),
    rounded("aten.erf.default"),
    rounded("aten.exp.default"),
    rounded("aten.exp2.default"),
    rounded("aten.expm1.default"),
    exact("aten.floor.default"),
    shapeOnly("aten.full_like.default"),
    exact("aten.ge.Scalar"),
    exact("aten.ge.Tensor"),
    rounded("aten.gelu.default"),
    rounded("aten.gelu_backward.default"),
    exact("aten.gt.Scalar"),
    exact("aten.gt.Tensor"),
    rounded("aten.hardswish.default"),
    rounded("aten.hardswish_backward.default"),
    exact("aten.le.Scalar"),
    exact("aten.le.Tensor"),
    rounded("aten.lerp.Scalar"),
    rounded("aten.log.default"),
    rounded("aten.log1p.default"),
    rounded("aten.log2.default"),
    exact("aten.logical_and.default"),
    exact("aten.logical_not.default"),
    exact("aten.logical_or.default"),
    exact("aten.lt.Scalar"),
    exact("aten.lt.Tensor"),
    exact("aten.masked_fill.Scalar"),
    exact("aten.masked_fill.Tensor"),
    exact("aten.maximum.default"),
    exact("aten.minimum.default"),
    rounded("aten.mish.default"),
    rounded("aten.mish_backward.default"),
    exact("aten.mul.Scalar"),
    exact("aten.mul.Tensor"),
    exact("aten.ne.Scalar"),
    exact("aten.ne.Tensor"),
    exact("aten.neg.default"),
    shapeOnly("aten.new_empty.default"),
    shapeOnly("aten.new_full.default"),
    shapeOnly("aten.new_ones.default"),
    shapeOnly("aten.new_zeros.default"),
    {.op = "aten.nll_loss_backward.default", .kind = RowKind::kLossBackward},
    {.op = "aten.nll_loss_forward.default", .kind = RowKind::kLossForward},
    shapeOnly("aten.ones_like.default"),
    rounded("aten.pow.Tensor_Scalar"),
    rounded("aten.reciprocal.default"),
    exact("aten.relu.default"),
    exact("aten.round.default"),
    rounded("aten.rsqrt.default"),
    exact("aten.rsub.Scalar", 2),
    exact("aten.rsub.Tensor", 2),
    rounded("aten.sigmoid.default"),
    rounded("aten.sigmoid_backward.default"),
    exact("aten.sign.default"),
    rounded("aten.silu.default"),
    rounded("aten.silu_backward.default"),
    rounded("aten.sin.default"),
    rounded("aten.softplus.default"),
    rounded("aten.softplus_backward.default"),
    exact("aten.sqrt.default"),
    exact("aten.sub.Scalar", 2),
    exact("aten.sub.Tensor", 2),
    rounded("aten.tanh.default"),
    rounded("aten.tanh_backward.default"),
    exact("aten.threshold_backward.default"),
    exact("aten.trunc.default"),
    exact("aten.where.self"),
    shapeOnly("aten.zeros_like.default"),
};
// clang-format on

constexpr bool isOrderedByName() {
  for (size_t i = 1; i < std::size(kRows); ++i) {
    if (!(std::string_view(kRows[i - 1].op) < std::string_view(kRows[i].op))) return false;
  }
  return true;
}
static_assert(isOrderedByName(), "rows must be in order of name, each name once");

constexpr RowOp kUnknown{};

}  // namespace

const RowOp& lookUpRowOp(llvm::StringRef op) {
  const RowOp* row = std::lower_bound(
      std::begin(kRows), std::end(kRows), op,
      [](const RowOp& candidate, llvm::StringRef name) { return candidate.op < name; });
  return row != std::end(kRows) && row->op == op ? *row : kUnknown;
}

RowOpView allRowOps() { return {.begin_ = std::begin(kRows), .end_ = std::end(kRows)}; }

}  // namespace stowage::ir
