// SPDX-License-Identifier: Apache-2.0
//
// A loss in row blocks: nll_loss_forward sums over all rows, in an order that its kernel chooses by
// the number of rows. So the same kernel runs once more on a matrix of one column, which holds the
// number that each row adds: targets become 0, or stay ignored. The sum of weights depends on the
// targets alone and is had in the same way before the first block. Without weights of classes each
// row's loss is its negated number, exactly.
#include "passes/normalise/row_block_writer.h"

#include <utility>

namespace stowage::passes {

namespace {

constexpr int64_t kReductionNone = 0;
constexpr int64_t kIgnored = -100;

ir::ValueId valueAt(const ir::Node& node, size_t index) {
  return std::get<ir::ValueArg>(node.args[index]).value;
}

ir::TensorType contiguous(ir::DType dtype, llvm::ArrayRef<int64_t> sizes) {
  ir::TensorType type{.dtype = dtype};
  type.sizes.assign(sizes.begin(), sizes.end());
  type.strides = ir::contiguousStrides(type.sizes);
  return type;
}

}  // namespace

void RowBlockWriter::openLoss(const RowMember& member) {
  const ir::Node& node = graph_.node(member.node);
  const ir::ValueId target = valueAt(node, 1);
  const ir::ValueId total = node.results[0];
  const int64_t rows = graph_.value(target).type.sizes[0];
  const ir::DType dtype = graph_.value(total).type.dtype;

  const ir::ValueId isIgnored =
      makeValue(total, contiguous(ir::DType::kBool, {rows}), ".ignored", "[ignored]");
  const ir::ValueId targets =
      makeValue(total, contiguous(ir::DType::kI64, {rows}), ".targets", "[targets]");
  const ir::ValueId losses = makeValue(total, contiguous(dtype, {rows}), ".losses", "[losses]");
  const ir::ValueId column =
      builder_.addValue({.name = uniqueValueName(graph_.value(total).name + ".losses.column"),
                         .storage = builder_.value(losses).storage,
                         .type = contiguous(dtype, {rows, 1})});
  const ir::ValueId standIn = makeValue(total, graph_.value(total).type, ".shape", "[shape]");

  nodes_.push_back(
      nodeLike(node, "aten.eq.Scalar", {ir::ValueArg{target}, node.args[4]}, {isIgnored}));
  nodes_.push_back(
      nodeLike(node, "aten.mul.Scalar", {ir::ValueArg{isIgnored}, kIgnored}, {targets}));
  // Any numbers: the sum of weights does not depend on them.
  nodes_.push_back(
      nodeLike(node, "aten._to_copy.default",
               {ir::ValueArg{isIgnored}, ir::EnumArg{.kind = "dtype", .text = ir::dtypeName(dtype)},
                ir::NoneArg{}, ir::NoneArg{}, ir::NoneArg{}, false, ir::NoneArg{}},
               {losses}));
  nodes_.push_back(
      nodeLike(node, "aten.nll_loss_forward.default",
               {ir::ValueArg{column}, ir::ValueArg{targets}, ir::NoneArg{}, node.args[3], kIgnored},
               {standIn, node.results[1]}));
  losses_.push_back(
      {.node = member.node, .targets = targets, .losses = losses, .standIn = standIn});
}

void RowBlockWriter::writeLossBlock(const Loss& loss, const RowMember& member, RowRange range) {
  const ir::Node& node = graph_.node(member.node);
  const ir::ValueId total = node.results[0];
  const ir::TensorType& type = graph_.value(total).type;
  const ir::ValueId losses =
      makeValue(total, contiguous(type.dtype, {range.count()}), blockSuffix(), blockLabel());
  const ir::ValueId unused =
      makeValue(node.results[1], graph_.value(node.results[1]).type, blockSuffix(), blockLabel());
  nodes_.push_back(nodeLike(node, "aten.nll_loss_forward.default",
                            {ir::ValueArg{rowsOf(valueAt(node, 0), 1, range)},
                             ir::ValueArg{rowsOf(valueAt(node, 1), 1, range)}, ir::NoneArg{},
                             kReductionNone, node.args[4]},
                            {losses, unused}));
  ir::TensorType rows = contiguous(type.dtype, {range.count()});
  rows.offset = range.begin;
  const ir::ValueId target =
      builder_.addValue({.name = uniqueValueName(graph_.value(total).name + blockSuffix() + ".out"),
                         .storage = builder_.value(loss.losses).storage,
                         .type = std::move(rows)});
  ir::Node copied = nodeLike(node, "aten.copy_.default",
                             {ir::ValueArg{target}, ir::ValueArg{losses}, false}, {target});
  copied.writes.push_back({.value = target});
  nodes_.push_back(std::move(copied));
}

void RowBlockWriter::closeLoss(const Loss& loss) {
  const ir::Node& node = graph_.node(loss.node);
  const ir::ValueId total = node.results[0];
  const ir::TensorType& type = builder_.value(loss.losses).type;
  const ir::ValueId numbers = makeValue(total, type, ".numbers", "[numbers]");
  const ir::ValueId column =
      builder_.addValue({.name = uniqueValueName(graph_.value(total).name + ".numbers.column"),
                         .storage = builder_.value(numbers).storage,
                         .type = contiguous(type.dtype, {type.sizes[0], 1})});
  const ir::ValueId again =
      makeValue(node.results[1], graph_.value(node.results[1]).type, ".again", "[again]");
  nodes_.push_back(nodeLike(node, "aten.neg.default", {ir::ValueArg{loss.losses}}, {numbers}));
  nodes_.push_back(nodeLike(
      node, "aten.nll_loss_forward.default",
      {ir::ValueArg{column}, ir::ValueArg{loss.targets}, ir::NoneArg{}, node.args[3], kIgnored},
      {total, again}));
}

}  // namespace stowage::passes
