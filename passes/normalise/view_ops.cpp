// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/view_ops.h"

#include <algorithm>
#include <array>

namespace stowage::passes {

namespace {

// Sorted by name: looked up by bisection.
constexpr std::array<const char*, 32> kAlwaysViews = {"_reshape_alias",
                                                      "_unsafe_view",
                                                      "alias",
                                                      "as_strided",
                                                      "chunk",
                                                      "detach",
                                                      "diagonal",
                                                      "expand",
                                                      "expand_as",
                                                      "lift_fresh",
                                                      "movedim",
                                                      "narrow",
                                                      "permute",
                                                      "select",
                                                      "slice",
                                                      "split",
                                                      "split_with_sizes",
                                                      "squeeze",
                                                      "swapaxes",
                                                      "swapdims",
                                                      "t",
                                                      "tensor_split",
                                                      "transpose",
                                                      "unbind",
                                                      "unfold",
                                                      "unsafe_chunk",
                                                      "unsafe_split",
                                                      "unsafe_split_with_sizes",
                                                      "unsqueeze",
                                                      "view",
                                                      "view_as",
                                                      "view_as_real"};

constexpr std::array<const char*, 7> kSometimesViews = {
    "_to_copy", "contiguous", "flatten", "reshape", "reshape_as", "to", "type_as"};

/// "aten.slice.Tensor" -> "slice"; "" outside aten.
llvm::StringRef baseName(llvm::StringRef op) {
  if (!op.consume_front("aten.")) return "";
  return op.split('.').first;
}

template <size_t kSize>
bool contains(const std::array<const char*, kSize>& sorted, llvm::StringRef name) {
  return std::binary_search(sorted.begin(), sorted.end(), name,
                            [](llvm::StringRef a, llvm::StringRef b) { return a < b; });
}

std::optional<int64_t> integerAt(const ir::Node& node, size_t index) {
  if (index >= node.args.size()) return std::nullopt;
  const auto* value = std::get_if<int64_t>(&node.args[index]);
  return value == nullptr ? std::nullopt : std::optional<int64_t>(*value);
}

/// The dimension argument `index` names, negative ones counted from the end.
std::optional<size_t> dimensionAt(const ir::Node& node, size_t index, size_t rank) {
  const std::optional<int64_t> dimension = integerAt(node, index);
  if (!dimension) return std::nullopt;
  const int64_t wrapped = *dimension < 0 ? *dimension + static_cast<int64_t>(rank) : *dimension;
  if (wrapped < 0 || wrapped >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(wrapped);
}

/// Where a cut at `position` along `dimension` starts; positions may count from the end.
int64_t cutOffset(const ir::TensorType& type, size_t dimension, int64_t position) {
  const int64_t size = type.sizes[dimension];
  const int64_t wrapped = position < 0 ? position + size : position;
  return type.offset + std::clamp<int64_t>(wrapped, 0, size) * type.strides[dimension];
}

}  // namespace

ViewKind viewKind(llvm::StringRef op) {
  const llvm::StringRef name = baseName(op);
  if (contains(kAlwaysViews, name)) return ViewKind::kAlways;
  return contains(kSometimesViews, name) ? ViewKind::kSometimes : ViewKind::kNone;
}

std::optional<int64_t> computeViewOffset(const ir::Graph& graph, const ir::Node& node,
                                         size_t index) {
  const auto* operand = std::get_if<ir::ValueArg>(&node.args[0]);
  const ir::TensorType& type = graph.value(operand->value).type;
  const llvm::StringRef name = baseName(node.op);
  const auto along = [&](size_t argument, int64_t position) -> std::optional<int64_t> {
    const std::optional<size_t> dimension = dimensionAt(node, argument, type.sizes.size());
    if (!dimension) return std::nullopt;
    return cutOffset(type, *dimension, position);
  };
  if (name == "slice") return along(1, integerAt(node, 2).value_or(0));
  if (name == "select" || name == "narrow") {
    const std::optional<int64_t> position = integerAt(node, 2);
    return position ? along(1, *position) : std::nullopt;
  }
  if (name == "unbind") return along(1, static_cast<int64_t>(index));
  if (name == "as_strided") return integerAt(node, 3).value_or(type.offset);
  if (name == "split" || name == "unsafe_split") {
    const std::optional<int64_t> size = integerAt(node, 1);
    return size ? along(2, *size * static_cast<int64_t>(index)) : std::nullopt;
  }
  static constexpr std::array<const char*, 6> kElsewhere = {
      "chunk",        "diagonal",     "split_with_sizes",
      "tensor_split", "unsafe_chunk", "unsafe_split_with_sizes"};
  if (contains(kElsewhere, name)) return std::nullopt;
  return type.offset;
}

}  // namespace stowage::passes
