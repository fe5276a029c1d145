// SPDX-License-Identifier: Apache-2.0
//
// Bags of embeddings and their gradients. Sources: EmbeddingBag.cpp and EmbeddingBag.cu of libtorch
// 2.11. The CPU saves as little as its path through the table needs, CUDA always the same; both
// were run on an H200. Sparse gradients are refused.
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

constexpr int64_t kSum = 0, kMax = 2;

/// _embedding_bag(weight, indices, offsets, scale_by_freq, mode, sparse, sample_weights?,
/// last_offset, padding)
struct Bags {
  explicit Bags(const TracedCall& call)
      : weight(call.tensor(0)),
        indices(call.tensor(1)),
        offsets(call.tensor(2)),
        mode(call.integer(4)),
        hasLastOffset(call.boolean(7)),
        padding(call.integer(8)),
        count(offsets.numel() - (hasLastOffset ? 1 : 0)),
        type(indices.scalar_type() == c10::kLong ? c10::kLong : offsets.scalar_type()) {
    if (call.hasTensor(6)) sampleWeights = call.tensor(6);
    TORCH_CHECK(weight.dim() == 2, "found a table of ", weight.dim(), " dimensions, expected 2");
  }

  at::Tensor weight, indices, offsets, sampleWeights;
  int64_t mode;
  bool hasLastOffset;
  int64_t padding, count;
  c10::ScalarType type;
};

/// The CPU sums rows of such tables without knowing the bag of each index.
bool needsNoBags(const Bags& bags) {
  const c10::ScalarType type = bags.weight.scalar_type();
  const bool isFast = type == c10::kFloat || type == c10::kHalf || type == c10::kBFloat16;
  const bool isDense = !bags.sampleWeights.defined() || bags.sampleWeights.stride(0) == 1;
  return bags.mode == kSum && isFast && isDense && bags.weight.stride(1) == 1 && bags.padding < 0;
}

/// The CPU makes room for one more and then cuts.
OutputTensor cut(OutputTensor tensor, int64_t elements) {
  const auto width = static_cast<int64_t>(c10::elementSize(tensor.shape.dtype));
  tensor.storageBytes = elements * width;
  return tensor;
}

Outputs bagsOnCpu(const Bags& bags, bool forBackward) {
  const OutputTensor bagOfIndex =
      needsNoBags(bags) ? fresh({0}, bags.type)
                        : cut(fresh({bags.indices.numel()}, bags.type), bags.indices.numel() + 1);
  const bool countsBags = forBackward || bags.mode != kSum;
  const int64_t sizes = countsBags ? bags.count : bags.offsets.numel();
  const OutputTensor bagSize = cut(fresh({sizes}, bags.type), bags.offsets.numel());
  const OutputTensor largest = bags.mode == kMax
                                   ? fresh({bags.count, bags.weight.size(1)}, bags.type)
                                   : fresh({sizes}, bags.type);
  return outputs({fresh({bags.count, bags.weight.size(1)}, bags.weight.scalar_type()), bagOfIndex,
                  bagSize, largest});
}

Outputs bagsOnCuda(const Bags& bags) {
  const std::vector<int64_t> sizes = {bags.count, bags.weight.size(1)};
  return outputs({fresh(sizes, bags.weight.scalar_type()), fresh({bags.indices.numel()}, bags.type),
                  fresh({bags.offsets.numel()}, bags.type),
                  bags.mode == kMax ? fresh(sizes, bags.type) : fresh({0}, bags.type)});
}

Outputs embeddingBag(const TracedCall& call) {
  const Bags bags(call);
  return call.device.is_cuda() ? bagsOnCuda(bags) : bagsOnCpu(bags, true);
}
Outputs embeddingBagForwardOnly(const TracedCall& call) {
  const Bags bags(call);
  return call.device.is_cuda() ? bagsOnCuda(bags) : bagsOnCpu(bags, false);
}

OutputTensor tableGradient(const TracedCall& call, size_t rows) {
  const at::Tensor& grad = call.tensor(0);
  return fresh({call.integer(rows), grad.size(1)}, grad.scalar_type());
}
/// _embedding_bag_backward(grad, indices, offsets, bag of index, sizes, largest, rows, by_freq,
/// mode, sparse, ...)
Outputs embeddingBagBackward(const TracedCall& call) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !call.boolean(9),
      "it makes a sparse gradient; build the module with EmbeddingBagOptions::sparse(false)");
  return outputs({tableGradient(call, 6)});
}
/// _embedding_bag_dense_backward(grad, indices, bag of index, sizes, largest, rows, ...)
Outputs embeddingBagDenseBackward(const TracedCall& call) {
  return outputs({tableGradient(call, 5)});
}
/// _embedding_bag_per_sample_weights_backward(grad, weight, indices, ...)
Outputs sampleWeightsBackward(const TracedCall& call) {
  return outputs({fresh({call.tensor(2).numel()}, call.tensor(0).scalar_type())});
}

constexpr NamedRule kRules[] = {
    {"aten._embedding_bag.default", embeddingBag},
    {"aten._embedding_bag_backward.default", embeddingBagBackward},
    {"aten._embedding_bag_dense_backward.default", embeddingBagDenseBackward},
    {"aten._embedding_bag_forward_only.default", embeddingBagForwardOnly},
    {"aten._embedding_bag_per_sample_weights_backward.default", sampleWeightsBackward},
};

}  // namespace

llvm::ArrayRef<NamedRule> embeddingBagRules() { return kRules; }

}  // namespace stowage::runtime
