// SPDX-License-Identifier: Apache-2.0
//
// Indexing, and draws that change the number of elements.
#include "runtime/capture/meta_kernel.h"
#include "runtime/capture/shape_rules.h"

namespace stowage::runtime {
namespace {

/// index(self, indices): a mask as index gives as many elements as it has ones.
Outputs index(const TracedCall& call) {
  for (const auto& tensor : call.args[1].toOptionalTensorVector()) {
    if (!tensor || !tensor->defined()) continue;
    TORCH_CHECK(tensor->scalar_type() != c10::kBool && tensor->scalar_type() != c10::kByte,
                "the shape of its result depends on the values of a mask, which a static plan cannot "
                "hold; use where() or masked_fill()");
  }
  return runMetaKernel(call);
}

constexpr NamedRule kRules[] = {
    {"aten.index.Tensor", index},
};

}  // namespace

llvm::ArrayRef<NamedRule> indexRules() { return kRules; }

}  // namespace stowage::runtime
