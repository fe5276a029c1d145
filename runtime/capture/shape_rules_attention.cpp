// SPDX-License-Identifier: Apache-2.0
//
// Fused attention. On the CPU results are laid out [batch, sequence, heads, width] and seen
// transposed.
#include "runtime/capture/shape_rules.h"

namespace stowage::runtime {
namespace {

/// A tensor of `sizes` = [b, h, s, ...] that lies in memory as [b, s, h, ...].
OutputTensor sequenceMajor(llvm::ArrayRef<int64_t> sizes, c10::ScalarType dtype) {
  llvm::SmallVector<int64_t, 4> strides(sizes.size(), 1);
  const int64_t width = sizes.size() == 4 ? sizes[3] : 1;
  strides[1] = width;
  strides[2] = sizes[1] * width;
  strides[0] = sizes[2] * strides[2];
  return freshStrided(sizes, strides, dtype);
}

/// _scaled_dot_product_flash_attention_for_cpu(q [b,h,s,d], k, v, ...) -> output, logsumexp [b,h,s]
/// in float
Outputs flashForCpu(const TracedCall& call) {
  const at::Tensor& query = call.tensor(0);
  const llvm::SmallVector<int64_t, 4> output = {query.size(0), query.size(1), query.size(2),
                                                call.tensor(2).size(3)};
  const c10::ScalarType statistics = query.scalar_type() == c10::ScalarType::Double
                                         ? c10::ScalarType::Double
                                         : c10::ScalarType::Float;
  return outputs({sequenceMajor(output, query.scalar_type()),
                  sequenceMajor(llvm::ArrayRef<int64_t>(output).take_front(3), statistics)});
}

/// ..._for_cpu_backward(grad, q, k, v, ...) -> gradients of q, k, v
Outputs flashForCpuBackward(const TracedCall& call) {
  const auto like = [&](size_t i) {
    const at::Tensor& tensor = call.tensor(i);
    return sequenceMajor({tensor.sizes().data(), tensor.sizes().size()}, tensor.scalar_type());
  };
  return outputs({like(1), like(2), like(3)});
}

constexpr NamedRule kRules[] = {
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", flashForCpu},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", flashForCpuBackward}};

}  // namespace

llvm::ArrayRef<NamedRule> attentionRules() { return kRules; }

}  // namespace stowage::runtime
