// SPDX-License-Identifier: Apache-2.0
//
// Updates of lists of tensors in one kernel: what belongs to a parameter looks like it.
#include "runtime/capture/ops/operand_checks.h"

namespace stowage::runtime {
namespace {

enum class Empty : uint8_t { kAllowed, kRefused };

/// The elements of list `name` look like those of list `self` at the same places.
void checkListLike(const Operands& operands, std::string_view name, Empty empty) {
  const std::vector<at::Tensor> found = operands.list(name);
  const std::vector<at::Tensor> expected = operands.list("self");
  if (found.empty() && empty == Empty::kAllowed) return;
  TORCH_CHECK(found.size() == expected.size(), "found ", found.size(), " tensors in ", name,
              ", expected ", expected.size(), " as in self");
  for (size_t i = 0; i < found.size(); ++i) {
    TORCH_CHECK(
        found[i].sizes() == expected[i].sizes() && found[i].strides() == expected[i].strides(),
        "found ", name, "[", i, "] of sizes ", found[i].sizes(), " with strides ",
        found[i].strides(), ", expected ", expected[i].sizes(), " with strides ",
        expected[i].strides(), " as in self");
    TORCH_CHECK(found[i].scalar_type() == expected[i].scalar_type() &&
                    found[i].device() == expected[i].device(),
                "found ", name, "[", i, "] of type ", found[i].scalar_type(), " on ",
                found[i].device(), ", expected ", expected[i].scalar_type(), " on ",
                expected[i].device(), " as in self");
  }
}

/// Kernels walk over the elements in the order of memory.
void checkParameters(const Operands& operands) {
  for (const at::Tensor& tensor : operands.list("self")) {
    TORCH_CHECK(tensor.is_non_overlapping_and_dense(),
                "found gaps between the elements of a tensor of self, expected none");
  }
}

void checkOneFloat(const at::Tensor& tensor, std::string_view name) {
  TORCH_CHECK(tensor.numel() == 1 && tensor.scalar_type() == c10::kFloat, "found ", name,
              " of type ", tensor.scalar_type(), " and sizes ", tensor.sizes(),
              ", expected one number of type Float");
}

void checkCounts(const Operands& operands) {
  const std::vector<at::Tensor> counts = operands.list("state_steps");
  const size_t expected = operands.list("self").size();
  TORCH_CHECK(counts.size() == expected, "found ", counts.size(),
              " tensors in state_steps, expected ", expected, " as in self");
  for (const at::Tensor& count : counts) checkOneFloat(count, "state_steps");
}

void checkScales(const Operands& operands) {
  for (const std::string_view name : {"lr", "grad_scale", "found_inf"}) {
    if (operands.has(name)) checkOneFloat(operands.tensor(name), name);
  }
}

void checkAdam(const TracedCall& call) {
  const Operands operands(call);
  checkParameters(operands);
  for (const std::string_view name : {"grads", "exp_avgs", "exp_avg_sqs"}) {
    checkListLike(operands, name, Empty::kRefused);
  }
  const bool amsgrad = operands.at("amsgrad").toBool();
  checkListLike(operands, "max_exp_avg_sqs", amsgrad ? Empty::kRefused : Empty::kAllowed);
  checkCounts(operands);
  checkScales(operands);
}

void checkSgd(const TracedCall& call) {
  const Operands operands(call);
  checkParameters(operands);
  checkListLike(operands, "grads", Empty::kRefused);
  const bool hasMomentum = operands.at("momentum").toDouble() != 0;
  checkListLike(operands, "momentum_buffer_list", hasMomentum ? Empty::kRefused : Empty::kAllowed);
  checkScales(operands);
}

void checkAdagrad(const TracedCall& call) {
  const Operands operands(call);
  checkParameters(operands);
  for (const std::string_view name : {"grads", "state_sums"}) {
    checkListLike(operands, name, Empty::kRefused);
  }
  checkCounts(operands);
  checkScales(operands);
}

void checkUnscale(const TracedCall& call) {
  const Operands operands(call);
  for (const std::string_view name : {"found_inf", "inv_scale"}) {
    checkOneFloat(operands.tensor(name), name);
  }
}

constexpr OperandRule kRules[] = {
    {"aten._amp_foreach_non_finite_check_and_unscale_", checkUnscale},
    {"aten._fused_adagrad_", checkAdagrad},
    {"aten._fused_adam_", checkAdam},
    {"aten._fused_adamw_", checkAdam},
    {"aten._fused_sgd_", checkSgd},
};

}  // namespace

llvm::ArrayRef<OperandRule> optimizerOperandRules() { return kRules; }

}  // namespace stowage::runtime
