// SPDX-License-Identifier: Apache-2.0
//
// Ops that draw random numbers, and what undoes dropout. That they draw is said by their tag
// (op_facts.cpp), not here. CPU and CUDA agree unless said; both were run on an H200 with libtorch
// 2.11. CUDA alone has `_fused_dropout` and `_masked_scale` (Dropout.cu).
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

/// native_dropout(input, p, train?) -> result, mask: made with empty_like, but on the CPU in
/// training, where input and mask are multiplied.
Outputs dropout(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const OutputTensor mask = freshLike(input, c10::kBool);
  const bool training = call.args[2].isNone() || call.boolean(2);
  if (call.device.is_cuda() || !training) return outputs({freshLike(input), mask});
  const c10::Storage bytes = makeFakeStorage(extentOf(mask.shape), call.device, false);
  return outputs(
      {elementwise(call, {input, makeTensor(bytes, mask.shape)}, input.scalar_type()), mask});
}

/// native_dropout_backward(grad, mask, scale): CUDA does not keep the layout.
Outputs dropoutBackward(const TracedCall& call) {
  const at::Tensor& grad = call.tensor(0);
  if (call.device.is_cuda()) return outputs({freshContiguous(grad)});
  return outputs({elementwise(call, {grad, call.tensor(1)}, grad.scalar_type())});
}

/// _fused_dropout(self, p, generator?) -> result, mask of bytes
Outputs fusedDropout(const TracedCall& call) {
  return outputs({freshLike(call.tensor(0)), freshLike(call.tensor(0), c10::kByte)});
}

Outputs contiguousLikeSelf(const TracedCall& call) {
  return outputs({freshContiguous(call.tensor(0))});
}

/// multinomial(self [rows..., choices], samples, replacement, generator?)
Outputs multinomial(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "found weights of ", self.dim(),
              " dimensions, expected 1 or 2");
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.back() = call.integer(1);
  return outputs({fresh(sizes, c10::kLong)});
}

Outputs permutationOf(const TracedCall& call, size_t dtype) {
  const c10::IValue& type = call.args[dtype];
  return outputs({fresh({call.integer(0)}, type.isNone() ? c10::kLong : type.toScalarType())});
}
/// randperm(n, dtype?, ...), randperm.generator(n, generator?, dtype?, ...)
Outputs permutation(const TracedCall& call) { return permutationOf(call, 1); }
Outputs permutationByGenerator(const TracedCall& call) { return permutationOf(call, 2); }

/// rrelu_with_noise_(self, noise, ...)
Outputs inPlace(const TracedCall& call) { return outputs({itself(call.tensor(0))}); }

constexpr NamedRule kRules[] = {
    {"aten._fused_dropout.default", fusedDropout},
    {"aten._masked_scale.default", contiguousLikeSelf},
    {"aten.binomial.default", contiguousLikeSelf},
    {"aten.multinomial.default", multinomial},
    {"aten.native_dropout.default", dropout},
    {"aten.native_dropout_backward.default", dropoutBackward},
    {"aten.poisson.default", contiguousLikeSelf},
    {"aten.randperm.default", permutation},
    {"aten.randperm.generator", permutationByGenerator},
    {"aten.rrelu_with_noise.default", contiguousLikeSelf},
    {"aten.rrelu_with_noise_.default", inPlace},
};

}  // namespace

llvm::ArrayRef<NamedRule> randomRules() { return kRules; }

}  // namespace stowage::runtime
