// SPDX-License-Identifier: Apache-2.0
//
// Updates that change lists of tensors in place and return nothing: libtorch has no kernel without
// data for them. Source: their schemas. And addcmul_, addcdiv_: libtorch's kernels written in
// Python take no number for a factor.
#include <ATen/ExpandUtils.h>

#include "runtime/capture/ops/meta_kernel.h"
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

Outputs returnsNothing(const TracedCall& /*call*/) { return {}; }

/// addcmul_(self, factor, factor, value), addcdiv_: onto self, which holds the broadcast shape.
Outputs termsOntoSelf(const TracedCall& call) {
  const at::Tensor &self = call.tensor(0), &first = call.tensor(1), &second = call.tensor(2);
  const bool isFloat =
      self.is_floating_point() && first.is_floating_point() && second.is_floating_point();
  if (!isFloat) return runMetaKernel(call);
  const at::DimVector sizes = at::infer_size_dimvector(first.sizes(), second.sizes());
  TORCH_CHECK(at::is_expandable_to(sizes, self.sizes()), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape of its factors, ", c10::IntArrayRef(sizes));
  return outputs({itself(self)});
}

constexpr NamedRule kRules[] = {
    {"aten._amp_foreach_non_finite_check_and_unscale_.default", returnsNothing},
    {"aten._fused_adagrad_.default", returnsNothing},
    {"aten._fused_adagrad_.tensor_lr", returnsNothing},
    {"aten._fused_adam_.default", returnsNothing},
    {"aten._fused_adam_.tensor_lr", returnsNothing},
    {"aten._fused_adamw_.default", returnsNothing},
    {"aten._fused_adamw_.tensor_lr", returnsNothing},
    {"aten._fused_sgd_.default", returnsNothing},
    {"aten._fused_sgd_.tensor_lr", returnsNothing},
    {"aten.addcdiv_.default", termsOntoSelf},
    {"aten.addcmul_.default", termsOntoSelf},
};

}  // namespace

llvm::ArrayRef<NamedRule> optimizerRules() { return kRules; }

}  // namespace stowage::runtime
