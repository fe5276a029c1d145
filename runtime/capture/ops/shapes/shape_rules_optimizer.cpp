// SPDX-License-Identifier: Apache-2.0
//
// Updates that change lists of tensors in place and return nothing: libtorch has no kernel without
// data for them. Source: their schemas.
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

Outputs returnsNothing(const TracedCall& /*call*/) { return {}; }

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
};

}  // namespace

llvm::ArrayRef<NamedRule> optimizerRules() { return kRules; }

}  // namespace stowage::runtime
