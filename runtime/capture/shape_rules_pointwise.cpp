// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops and reductions without an own kernel for tensors that have no data.
#include <ATen/ExpandUtils.h>

#include "runtime/capture/shape_rules.h"

namespace stowage::runtime {
namespace {

/// Like the operand, dense strides kept.
Outputs likeSelf(const TracedCall& call) { return outputs({freshLike(call.tensor(0))}); }

/// where(condition, self, other): all three broadcast; dense operands of one layout keep it.
Outputs where(const TracedCall& call) {
  const at::Tensor& self = call.tensor(1);
  const at::Tensor& other = call.tensor(2);
  const c10::DimVector two = at::infer_size_dimvector(self.sizes(), other.sizes());
  const c10::DimVector sizes = at::infer_size_dimvector(call.tensor(0).sizes(), two);
  const c10::ScalarType dtype = c10::promoteTypes(self.scalar_type(), other.scalar_type());
  return outputs({fresh({sizes.data(), sizes.size()}, dtype)});
}

/// max() and min() over everything.
Outputs scalarLikeSelf(const TracedCall& call) {
  return outputs({fresh({}, call.tensor(0).scalar_type())});
}

constexpr NamedRule kRules[] = {{"aten.max.default", scalarLikeSelf},
                                {"aten.min.default", scalarLikeSelf},
                                {"aten.relu.default", likeSelf},
                                {"aten.where.self", where}};

}  // namespace

llvm::ArrayRef<NamedRule> pointwiseRules() { return kRules; }

}  // namespace stowage::runtime
