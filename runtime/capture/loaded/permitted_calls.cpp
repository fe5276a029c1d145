// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/loaded/permitted_calls.h"

#include <llvm/ADT/STLExtras.h>

#include <variant>

#include "ir/base/affix.h"
#include "ir/graph/op_table.h"
#include "runtime/capture/ops/op_facts.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

/// Their kernels follow values (lengths, offsets, indices) or sizes that nobody has looked at.
bool isUnguarded(llvm::StringRef op) {
  static constexpr llvm::StringLiteral kUnguarded[] = {
      "aten._ctc_loss",
      "aten._cudnn_ctc_loss",
      "aten._embedding_bag",
      "aten._masked_softmax",
      "aten._native_multi_head_attention",
      "aten._pdist",
      "aten._slow_conv2d",
      "aten._upsample_bicubic2d_aa",
      "aten._upsample_bilinear2d_aa",
      "aten._weight_int",
      "aten.slow_conv",
  };
  return llvm::any_of(kUnguarded,
                      [&](llvm::StringRef prefix) { return ir::startsWith(op, prefix); });
}

bool canBeChecked(llvm::StringRef op) {
  ir::Expected<c10::OperatorHandle> found = findOperator(op.str());
  if (!found) {
    llvm::consumeError(found.takeError());
    return false;
  }
  return OpFacts(*found).resultsBy != ResultsBy::kNothing;
}

bool isIntegral(ir::DType dtype) {
  return dtype == ir::DType::kI64 || dtype == ir::DType::kI32 || dtype == ir::DType::kI16 ||
         dtype == ir::DType::kI8 || dtype == ir::DType::kU8;
}

/// A number that the smallest integer can be divided by.
bool isSafeDivisor(const ir::Argument& argument) {
  const auto isSafe = [](int64_t number) { return number != 0 && number != -1; };
  if (const auto* integer = std::get_if<int64_t>(&argument)) return isSafe(*integer);
  if (const auto* wrapped = std::get_if<ir::WrappedNumberArg>(&argument)) {
    const auto* integer = std::get_if<int64_t>(&wrapped->value);
    return integer != nullptr && isSafe(*integer);
  }
  return false;
}

/// The processor ends the program at -2^31 / -1, and libtorch's kernels do not ask.
bool dividesByAnyInteger(const ir::Graph& graph, const ir::Node& node) {
  static constexpr llvm::StringLiteral kDivisions[] = {
      "aten.div.", "aten.div_.", "aten.floor_divide", "aten.fmod", "aten.remainder"};
  const bool isDivision = llvm::any_of(
      kDivisions, [&](llvm::StringRef prefix) { return ir::startsWith(node.op, prefix); });
  if (!isDivision || node.args.size() < 2) return false;
  bool isOfIntegers = true;  // of integers alone; others make the result a float
  ir::forEachTensorArgument(node, [&](ir::ValueId value) {
    isOfIntegers = isOfIntegers && isIntegral(graph.value(value).type.dtype);
  });
  const bool isRounded = !ir::startsWith(node.op, "aten.div") || node.args.size() > 2;
  return isOfIntegers && isRounded && !isSafeDivisor(node.args[1]);
}

/// Counts how often each index occurs, at the place that the index names.
bool countsIndices(const ir::Node& node) {
  constexpr size_t kScaleByFrequency = 4;
  if (node.op != "aten.embedding_dense_backward.default") return false;
  if (node.args.size() <= kScaleByFrequency) return true;
  const auto* flag = std::get_if<bool>(&node.args[kScaleByFrequency]);
  return flag == nullptr || *flag;
}

}  // namespace

bool PermittedOps::allows(llvm::StringRef op) {
  const auto [entry, isNew] = known_.try_emplace(op, false);
  if (isNew) {
    // Of other libraries' ops our collectives alone are known.
    const bool isOurs = ir::startsWith(op, "aten.") || ir::startsWith(op, "stowage.");
    const bool isKnown = isOurs && (ir::lookUpOp(op).known || findShapeRule(op.str()) != nullptr);
    entry->second = isKnown && !isUnguarded(op) && canBeChecked(op);
  }
  return entry->second;
}

std::optional<WrongCall> findForbiddenCall(const ir::Graph& graph) {
  PermittedOps permitted;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::NodeId id(i);
    const ir::Node& node = graph.node(id);
    const auto forbidden = [&](const std::string& why) {
      return WrongCall{id, ir::ErrorCode::kUnsupported, graph.describeNode(id) + ": " + why};
    };
    if (!permitted.allows(node.op)) {
      return forbidden(
          "may not be called from a file, expected an op of training that is known to touch "
          "nothing but its tensors");
    }
    if (dividesByAnyInteger(graph, node)) {
      return forbidden(
          "divides integers by values of the step, expected a number other than 0 and -1 as "
          "divisor in a step from a file");
    }
    if (countsIndices(node)) {
      return forbidden(
          "counts indices at the places that they name (scale_grad_by_freq), expected false in a "
          "step from a file");
    }
  }
  return std::nullopt;
}

}  // namespace stowage::runtime
