// SPDX-License-Identifier: Apache-2.0
#include "planner/targets/op_work.h"

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>

#include <algorithm>
#include <initializer_list>

#include "ir/base/affix.h"
#include "ir/graph/op_table.h"
#include "planner/targets/op_counts.h"

namespace stowage::planner {

namespace {

using llvm::StringRef;

constexpr int64_t kMatmulTile = 64;      // rows and columns that a block computes at least
constexpr int64_t kAttentionTile = 128;  // queries and keys of a block
constexpr int64_t kAlignment = 16;       // bytes of the widest load
constexpr int64_t kTensorChannels = 4;   // tensor cores take multiples of so many channels

/// Of sizes that a file may hold: at most INT64_MAX.
int64_t product(std::initializer_list<int64_t> factors) {
  __int128 result = 1;
  for (const int64_t factor : factors) {
    result = std::min<__int128>(result * factor, INT64_MAX);
  }
  return static_cast<int64_t>(result);
}

int64_t tiled(int64_t size, int64_t tile) {
  return std::min(size, INT64_MAX - tile) / tile * tile + (size % tile == 0 ? 0 : tile);
}

/// "aten.add_.Tensor" -> "add".
StringRef baseName(StringRef op) {
  op = op.split('.').second.split('.').first;
  if (ir::endsWith(op, "_")) op = op.drop_back(1);
  return op;
}

bool isOneOf(StringRef name, std::initializer_list<const char*> names) {
  return llvm::any_of(names, [&](const char* one) { return name == one; });
}

bool holds(StringRef name, std::initializer_list<const char*> parts) {
  return llvm::any_of(parts, [&](const char* part) { return name.contains(part); });
}

/// A node with the types of its tensors.
struct Call {
  const ir::Graph& graph;
  const ir::Node& node;
  StringRef name;
  llvm::SmallVector<ir::ValueId, 8> operands;
  llvm::SmallVector<ir::ValueId, 4> results;  // defined ones

  const ir::TensorType& type(ir::ValueId value) const { return graph.value(value).type; }
  int64_t bytes(ir::ValueId value) const { return bytesOfValue(graph, value); }
  bool isBackward() const { return name.contains("backward"); }
};

/// Rows begin at multiples of what the widest load takes.
bool hasAlignedRows(const ir::TensorType& matrix) {
  if (matrix.strides.size() < 2) return true;
  const int64_t row = std::max(matrix.strides[matrix.strides.size() - 1],
                               matrix.strides[matrix.strides.size() - 2]);
  return row % kAlignment * ir::elementBytes(matrix.dtype) % kAlignment == 0;
}

void countMatmul(const Call& call, OpWork& work) {
  const bool isHalf = work.dtype == ir::DType::kF16 || work.dtype == ir::DType::kBF16;
  const bool isVector = work.dtype == ir::DType::kF32 || work.dtype == ir::DType::kF64;
  work.kind = isVector ? WorkKind::kVectorMatmul : WorkKind::kMatmul;
  if (call.operands.size() < 2 || call.results.empty()) return;
  const ir::TensorType& left = call.type(call.operands[call.operands.size() - 2]);
  const ir::TensorType& right = call.type(call.operands.back());
  const ir::TensorType& result = call.type(call.results[0]);
  if (isHalf && !(hasAlignedRows(left) && hasAlignedRows(right) && hasAlignedRows(result))) {
    work.kind = WorkKind::kUnalignedMatmul;
  }
  const size_t rank = result.sizes.size();
  if (rank < 2 || left.sizes.empty()) return;
  const int64_t rows = result.sizes[rank - 2];
  const int64_t columns = result.sizes[rank - 1];
  int64_t batch = 1;
  for (const int64_t size : llvm::ArrayRef<int64_t>(result.sizes).drop_back(2)) {
    batch = product({batch, size});
  }
  work.flops =
      product({2, batch, tiled(rows, kMatmulTile), tiled(columns, kMatmulTile), left.sizes.back()});
}

/// The first double among the arguments is the dropout's probability.
bool dropsOut(const ir::Node& node) {
  for (const ir::Argument& argument : node.args) {
    if (const double* number = std::get_if<double>(&argument)) return *number > 0;
  }
  return false;
}

void countAttention(const Call& call, OpWork& work) {
  const AttentionShape* shape = findAttention(call.node.op);
  work.kind = call.isBackward() ? WorkKind::kAttentionBackward : WorkKind::kAttention;
  if (shape == nullptr || static_cast<int>(call.operands.size()) < shape->query + 2) return;
  const ir::TensorType& query = call.type(call.operands[shape->query]);
  const ir::TensorType& key = call.type(call.operands[shape->query + 1]);
  if (query.sizes.size() != 4 || key.sizes.size() != 4) return;
  const int64_t queries = tiled(query.sizes[2], kAttentionTile);
  const int64_t keys = tiled(key.sizes[2], kAttentionTile);
  // A causal mask leaves the tiles up to the diagonal's.
  const int64_t perQuery = isCausal(call.node, *shape) ? keys / 2 + kAttentionTile / 2 : keys;
  work.elements = product({query.sizes[0], query.sizes[1], queries, perQuery});
  work.flops = product({shape->fourths, work.elements, query.sizes[3]});
  work.draws = dropsOut(call.node);
  // Queries, keys and values may be parts of one storage.
  int64_t bytes = 0;
  for (const ir::ValueId value : call.operands) bytes += call.bytes(value);
  for (const ir::ValueId value : call.results) bytes += call.bytes(value);
  work.bytes = Bytes(bytes);
}

/// One element of the kernel in steps of one: every pixel is used once and in order.
bool isPointwise(const Call& call, const ir::TensorType& weight) {
  for (const int64_t size : llvm::ArrayRef<int64_t>(weight.sizes).drop_front(2)) {
    if (size != 1) return false;
  }
  const size_t stride = call.isBackward() ? 4 : 3;
  if (call.node.args.size() <= stride) return false;
  const auto* strides = std::get_if<ir::NumberList>(&call.node.args[stride]);
  return strides != nullptr && llvm::all_of(*strides, [](const auto& number) {
           const int64_t* step = std::get_if<int64_t>(&number);
           return step != nullptr && *step == 1;
         });
}

void countConvolution(const Call& call, OpWork& work) {
  const size_t first = call.isBackward() ? 1 : 0;  // after the result's gradient
  work.kind = call.isBackward() ? WorkKind::kConvolutionBackward : WorkKind::kConvolution;
  work.unit = work.dtype == ir::DType::kF32 ? FlopUnit::kTf32 : FlopUnit::kDType;
  if (call.operands.size() < first + 2 || call.results.empty()) return;
  const ir::TensorType& image = call.type(call.operands[first]);
  const ir::TensorType& weight = call.type(call.operands[first + 1]);
  if (image.sizes.size() < 2 || weight.sizes.size() < 2) return;
  if (weight.sizes[1] % kTensorChannels != 0) {
    work.kind = WorkKind::kNarrowConvolution;
    work.unit = FlopUnit::kVector;
    return;
  }
  int64_t pixels = 1;
  for (const int64_t size : llvm::ArrayRef<int64_t>(image.sizes).drop_front(2)) pixels *= size;
  const bool isAligned = pixels * ir::elementBytes(image.dtype) % kAlignment == 0;
  // Such kernels read images as they lie. For others cuDNN lays them out channel by channel first.
  if (isPointwise(call, weight) && isAligned) return;
  const ir::ValueId other = call.isBackward() ? call.operands[0] : call.results[0];
  work.elements = image.numElements() + call.type(other).numElements();
  const bool givesImage = call.type(call.results[0]).sizes == image.sizes;
  if (call.isBackward() && givesImage) work.elements += image.numElements();
}

/// Kinds that an op's name tells, for ops that move bytes; kElementwise for others.
WorkKind kindOf(const Call& call) {
  const StringRef name = call.name;
  const bool backward = call.isBackward();
  if (ir::startsWith(name, "_foreach") || ir::startsWith(name, "_fused_ada") ||
      ir::startsWith(name, "_fused_sgd")) {
    return WorkKind::kOptimizer;
  }
  if (name.contains("cudnn_batch_norm")) {
    return backward ? WorkKind::kCudnnBatchNormBackward : WorkKind::kCudnnBatchNorm;
  }
  if (name.contains("batch_norm")) {
    return backward ? WorkKind::kBatchNormBackward : WorkKind::kBatchNorm;
  }
  if (holds(name, {"layer_norm", "rms_norm", "group_norm"})) {
    return backward ? WorkKind::kNormBackward : WorkKind::kNorm;
  }
  if (name.contains("softmax")) {
    return backward ? WorkKind::kSoftmaxBackward : WorkKind::kSoftmax;
  }
  if (isOneOf(name, {"sum", "mean", "amax", "amin", "prod", "var", "var_mean", "std", "norm",
                     "linalg_vector_norm", "logsumexp"})) {
    return WorkKind::kReduction;
  }
  if (name == "embedding_dense_backward") return WorkKind::kEmbeddingBackward;
  if (holds(name, {"pool", "upsample"})) return backward ? WorkKind::kScatter : WorkKind::kWalk;
  if (holds(name, {"index_put", "index_add", "scatter"})) return WorkKind::kScatter;
  if (isOneOf(name, {"gelu",  "gelu_backward",  "silu",     "silu_backward",
                     "tanh",  "tanh_backward",  "sigmoid",  "sigmoid_backward",
                     "elu",   "elu_backward",   "softplus", "mish",
                     "exp",   "exp2",           "expm1",    "log",
                     "log1p", "log2",           "sin",      "cos",
                     "erf",   "native_dropout", "bernoulli"})) {
    return WorkKind::kMath;
  }
  return WorkKind::kElementwise;
}

/// Whether a kernel has to find each element of the operands by itself.
bool walks(const Call& call) {
  if (isOneOf(call.name,
              {"cat", "stack", "slice_backward", "select_backward", "constant_pad_nd"})) {
    return llvm::any_of(call.operands,
                        [&](ir::ValueId value) { return !call.type(value).isContiguous(); });
  }
  const bool isCopy = isOneOf(call.name, {"_to_copy", "copy", "clone"});
  const ir::TensorType* first = nullptr;
  for (const auto& values :
       {llvm::ArrayRef<ir::ValueId>(call.operands), llvm::ArrayRef<ir::ValueId>(call.results)}) {
    for (const ir::ValueId value : values) {
      const ir::TensorType& type = call.type(value);
      // A number, or the mask that a dropout's kernels read beside an operand.
      if (type.numElements() <= 1 || type.dtype == ir::DType::kBool) continue;
      if (first == nullptr) first = &type;
      if (type.sizes != first->sizes || type.strides != first->strides) return true;
      // Copies to a narrower dtype have a kernel of their own.
      const bool isNarrower = ir::elementBytes(type.dtype) <= ir::elementBytes(first->dtype);
      if (type.dtype != first->dtype && !(isCopy && isNarrower)) return true;
    }
  }
  return false;
}

void countMoved(const Call& call, OpWork& work) {
  work.kind = kindOf(call);
  const ir::ValueId result = call.results.empty() ? ir::ValueId() : call.results[0];
  if (isOneOf(call.name, {"embedding", "index_select", "gather", "index"}) && result.isValid()) {
    work.bytes = Bytes(2 * call.bytes(result));  // the rows that are asked for
  } else if (call.name == "nll_loss_backward" && result.isValid()) {
    work.bytes = Bytes(call.bytes(result));  // only the gradient is written
  } else if (call.name == "nll_loss_forward" && call.operands.size() > 1) {
    work.bytes = Bytes(call.bytes(call.operands[1]));  // one number per target is read
  } else if (work.kind == WorkKind::kElementwise && walks(call)) {
    work.kind = WorkKind::kWalk;
  }
  for (const ir::ValueId value : call.operands) {
    work.elements = std::max(work.elements, call.type(value).numElements());
  }
  for (const ir::ValueId value : call.results) {
    work.elements = std::max(work.elements, call.type(value).numElements());
  }
  if (call.operands.empty()) return;
  const ir::TensorType& operand = call.type(call.operands[0]);
  if (work.kind == WorkKind::kEmbeddingBackward) work.elements = operand.numElements();
  const bool isBatchNorm = call.name.contains("batch_norm");
  if (isBatchNorm && operand.sizes.size() > 1) work.channels = operand.sizes[1];
  if (work.kind == WorkKind::kReduction && result.isValid()) {
    work.reduced = operand.numElements() / std::max<int64_t>(1, call.type(result).numElements());
  }
}

}  // namespace

OpWork countWork(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  Call call{.graph = graph,
            .node = node,
            .name = baseName(node.op),
            .operands = tensorArguments(node),
            .results = {}};
  for (const ir::ValueId value : node.results) {
    if (value.isValid()) call.results.push_back(value);
  }
  OpWork work;
  work.dtype = workDType(graph, node);
  work.flops = countFlops(graph, id);
  work.bytes = countBytes(graph, id);
  switch (ir::lookUpOp(node.op).cost) {
    case ir::CostKind::kMatmul:
      countMatmul(call, work);
      break;
    case ir::CostKind::kConvolution:
      countConvolution(call, work);
      break;
    case ir::CostKind::kAttention:
      countAttention(call, work);
      break;
    case ir::CostKind::kBytes:
    case ir::CostKind::kFree:
      countMoved(call, work);
      break;
  }
  return work;
}

}  // namespace stowage::planner
