// SPDX-License-Identifier: Apache-2.0
//
// Indexing, lookups in tables and their gradients.
#include <ATen/core/grad_mode.h>
#include <c10/core/WrapDimMinimal.h>

#include "runtime/capture/ops/meta_kernel.h"
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

/// embedding(weight [n, d], indices, ...) -> [indices..., d]
Outputs embedding(const TracedCall& call) {
  const at::Tensor& weight = call.tensor(0);
  TORCH_CHECK_NOT_IMPLEMENTED(
      !(call.args.size() > 4 && call.boolean(4) && weight.requires_grad() &&
        at::GradMode::is_enabled()),
      "it makes a sparse gradient, whose size depends on values; build the module with "
      "EmbeddingOptions::sparse(false)");
  llvm::SmallVector<int64_t, 4> sizes(call.tensor(1).sizes().begin(), call.tensor(1).sizes().end());
  for (int64_t dim = 1; dim < weight.dim(); ++dim) sizes.push_back(weight.size(dim));
  return outputs({fresh(sizes, weight.scalar_type())});
}

/// embedding_dense_backward(grad [..., d], indices, n, ...) -> [n, d]
Outputs embeddingDenseBackward(const TracedCall& call) {
  const at::Tensor& grad = call.tensor(0);
  return outputs({fresh({call.integer(2), grad.size(-1)}, grad.scalar_type())});
}

/// index_select(self, dim, index): like self with index's length along dim.
Outputs indexSelect(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  llvm::SmallVector<int64_t, 4> sizes(self.sizes().begin(), self.sizes().end());
  if (!sizes.empty()) {
    const int64_t dim = c10::maybe_wrap_dim(call.integer(1), self.dim());
    sizes[static_cast<size_t>(dim)] = call.tensor(2).numel();
  }
  return outputs({fresh(sizes, self.scalar_type())});
}

/// index(self, indices): a mask as index gives as many elements as it has ones.
Outputs index(const TracedCall& call) {
  for (const auto& tensor : call.args[1].toOptionalTensorVector()) {
    if (!tensor || !tensor->defined()) continue;
    TORCH_CHECK_NOT_IMPLEMENTED(
        tensor->scalar_type() != c10::kBool && tensor->scalar_type() != c10::kByte,
        "the shape of its result depends on the values of a mask, which a static plan cannot "
        "hold; use where() or masked_fill()");
  }
  return runMetaKernel(call);
}

/// take(self, index), of any shapes.
Outputs take(const TracedCall& call) {
  return outputs({fresh(call.tensor(1).sizes().vec(), call.tensor(0).scalar_type())});
}

/// bucketize(self, boundaries, out_int32, right), searchsorted(sorted, self, out_int32, ...)
Outputs positions(const TracedCall& call, size_t values) {
  return outputs(
      {fresh(call.tensor(values).sizes().vec(), call.boolean(2) ? c10::kInt : c10::kLong)});
}
Outputs bucketize(const TracedCall& call) { return positions(call, 0); }
Outputs searchSorted(const TracedCall& call) { return positions(call, 1); }

/// unfold_backward(grad, input_sizes, dim, size, step)
Outputs unfoldBackward(const TracedCall& call) {
  return outputs({fresh(call.args[1].toIntVector(), call.tensor(0).scalar_type())});
}

/// repeat_interleave.Tensor(repeats, output_size?): the sum of `repeats`, unless it is given.
Outputs repeatInterleave(const TracedCall& call) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !call.args[1].isNone(),
      "the shape of its result depends on values, which a static plan cannot hold; pass "
      "output_size");
  return outputs({fresh({call.integer(1)}, call.tensor(0).scalar_type())});
}

constexpr NamedRule kRules[] = {
    {"aten.bucketize.Tensor", bucketize},
    {"aten.embedding.default", embedding},
    {"aten.embedding_dense_backward.default", embeddingDenseBackward},
    {"aten.index.Tensor", index},
    {"aten.index_select.default", indexSelect},
    {"aten.repeat_interleave.Tensor", repeatInterleave},
    {"aten.searchsorted.Tensor", searchSorted},
    {"aten.take.default", take},
    {"aten.unfold_backward.default", unfoldBackward},
};

}  // namespace

llvm::ArrayRef<NamedRule> indexRules() { return kRules; }

}  // namespace stowage::runtime
