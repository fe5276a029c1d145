// SPDX-License-Identifier: Apache-2.0
#include "planner/targets/op_counts.h"

#include <algorithm>
#include <array>
#include <map>

#include "ir/graph/op_table.h"

namespace stowage::planner {

namespace {

const ir::TensorType& typeOf(const ir::Graph& graph, ir::ValueId value) {
  return graph.value(value).type;
}

/// The n-th argument that is a single truth value; false when there are fewer.
bool truthArgument(const ir::Node& node, int n) {
  for (const ir::Argument& argument : node.args) {
    const bool* truth = std::get_if<bool>(&argument);
    if (truth != nullptr && n-- == 0) return *truth;
  }
  return false;
}

constexpr std::array<AttentionShape, 8> kAttention = {{
    {"aten._scaled_dot_product_cudnn_attention.default", 0, 1, 4, 0},
    {"aten._scaled_dot_product_cudnn_attention_backward.default", 1, 0, 10, 3},
    {"aten._scaled_dot_product_efficient_attention.default", 0, 1, 4, 0},
    {"aten._scaled_dot_product_efficient_attention_backward.default", 1, 0, 10, 3},
    {"aten._scaled_dot_product_flash_attention.default", 0, 0, 4, 0},
    {"aten._scaled_dot_product_flash_attention_backward.default", 1, 0, 10, 5},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", 0, 0, 4, 1},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", 1, 0, 10, 2},
}};

int64_t attentionFlops(const ir::Graph& graph, const ir::Node& node) {
  const AttentionShape* shape = findAttention(node.op);
  const auto tensors = tensorArguments(node);
  if (shape == nullptr || static_cast<int>(tensors.size()) < shape->query + 2) return 0;
  const ir::TensorType& query = typeOf(graph, tensors[shape->query]);
  const ir::TensorType& key = typeOf(graph, tensors[shape->query + 1]);
  if (query.sizes.size() != 4 || key.sizes.size() != 4) return 0;
  const int64_t flops = shape->fourths * query.numElements() * key.sizes[2];
  return isCausal(node, *shape) ? flops / 2 : flops;
}

/// The last two tensors are the matrices: mm(a, b), addmm(bias, a, b), bmm(a, b), baddbmm(bias, a,
/// b).
int64_t matmulFlops(const ir::Graph& graph, const ir::Node& node) {
  const auto tensors = tensorArguments(node);
  if (tensors.size() < 2 || node.results.empty() || !node.results[0].isValid()) return 0;
  const ir::TensorType& left = typeOf(graph, tensors[tensors.size() - 2]);
  if (left.sizes.empty()) return 0;
  return 2 * typeOf(graph, node.results[0]).numElements() * left.sizes.back();
}

int64_t convolutionFlops(const ir::Graph& graph, const ir::Node& node) {
  const auto tensors = tensorArguments(node);
  const bool backward = node.op.find("backward") != std::string::npos;
  if (tensors.size() < (backward ? 3U : 2U) || node.results.empty()) return 0;
  const ir::TensorType& weight = typeOf(graph, tensors[backward ? 2 : 1]);
  if (weight.sizes.empty() || weight.sizes[0] == 0) return 0;
  const int64_t perOutput = 2 * (weight.numElements() / weight.sizes[0]);
  if (backward) return perOutput * typeOf(graph, tensors[0]).numElements() * wantedGradients(node);
  return node.results[0].isValid() ? perOutput * typeOf(graph, node.results[0]).numElements() : 0;
}

}  // namespace

llvm::SmallVector<ir::ValueId, 8> tensorArguments(const ir::Node& node) {
  llvm::SmallVector<ir::ValueId, 8> tensors;
  ir::forEachTensorArgument(node, [&](ir::ValueId value) { tensors.push_back(value); });
  return tensors;
}

int64_t bytesOfValue(const ir::Graph& graph, ir::ValueId value) {
  const ir::TensorType& type = typeOf(graph, value);
  return type.numElements() * ir::elementBytes(type.dtype);
}

/// Arithmetic happens in the dtype of the first floating point operand.
ir::DType workDType(const ir::Graph& graph, const ir::Node& node) {
  for (const ir::ValueId value : tensorArguments(node)) {
    const ir::DType dtype = typeOf(graph, value).dtype;
    if (dtype == ir::DType::kF16 || dtype == ir::DType::kBF16 || dtype == ir::DType::kF32 ||
        dtype == ir::DType::kF64 || dtype == ir::DType::kF8E4M3 || dtype == ir::DType::kF8E5M2) {
      return dtype;
    }
  }
  return ir::DType::kF32;
}

const AttentionShape* findAttention(llvm::StringRef op) {
  const auto* found = std::find_if(kAttention.begin(), kAttention.end(),
                                   [&](const AttentionShape& shape) { return op == shape.op; });
  return found == kAttention.end() ? nullptr : found;
}

bool isCausal(const ir::Node& node, const AttentionShape& shape) {
  return truthArgument(node, shape.causal);
}

int64_t wantedGradients(const ir::Node& node) {
  const auto* mask = node.args.empty() ? nullptr : std::get_if<ir::NumberList>(&node.args.back());
  if (mask == nullptr || mask->size() != 3) return 2;
  int64_t wanted = 0;
  for (size_t i = 0; i < 2; ++i) {
    const bool* truth = std::get_if<bool>(&(*mask)[i]);
    if (truth != nullptr && *truth) ++wanted;
  }
  return wanted;
}

int64_t countFlops(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  switch (ir::lookUpOp(node.op).cost) {
    case ir::CostKind::kMatmul:
      return matmulFlops(graph, node);
    case ir::CostKind::kConvolution:
      return convolutionFlops(graph, node);
    case ir::CostKind::kAttention:
      return attentionFlops(graph, node);
    case ir::CostKind::kBytes:
    case ir::CostKind::kFree:
      return 0;
  }
  return 0;
}

Bytes countBytes(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  // Per storage the largest of the node's views, so that x + x counts x once.
  std::map<ir::StorageId, int64_t> spans;
  const auto add = [&](ir::ValueId value) {
    int64_t& span = spans[graph.value(value).storage];
    span = std::max(span, bytesOfValue(graph, value));
  };
  ir::forEachTensorArgument(node, add);
  for (const ir::ValueId value : node.results) {
    if (value.isValid()) add(value);
  }
  int64_t bytes = 0;
  for (const ir::Access& access : graph.accesses(id)) {
    const auto span = spans.find(access.storage);
    if (span == spans.end()) continue;
    bytes += span->second * ((access.reads() ? 1 : 0) + (access.writes() ? 1 : 0));
  }
  return Bytes(bytes);
}

}  // namespace stowage::planner
