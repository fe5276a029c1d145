// SPDX-License-Identifier: Apache-2.0
//
// Losses, distances and softmax: gradients look like what the forward op returns.
#include <string_view>

#include "runtime/capture/ops/op_facts.h"
#include "runtime/capture/ops/operand_checks.h"

namespace stowage::runtime {
namespace {

void checkNllLoss(const TracedCall& call) {
  checkSaved(call, "aten.nll_loss_forward.default", {{"grad_output", 0}, {"total_weight", 1}});
}
void checkNllLoss2d(const TracedCall& call) {
  checkSaved(call, "aten.nll_loss2d_forward.default", {{"grad_output", 0}, {"total_weight", 1}});
}
void checkMultiMargin(const TracedCall& call) {
  checkSaved(call, "aten.multi_margin_loss.default", {{"grad_output", 0}});
}
void checkMultilabelMargin(const TracedCall& call) {
  checkSaved(call, "aten.multilabel_margin_loss_forward.default",
             {{"grad_output", 0}, {"is_target", 1}});
}
void checkDistances(const TracedCall& call) {
  const Operands operands(call);
  const at::Tensor x1 = operands.tensor("x1"), x2 = operands.tensor("x2");
  TORCH_CHECK(x1.dim() >= 2 && x2.dim() == x1.dim() && x1.size(-1) == x2.size(-1),
              "found x2 of sizes ", x2.sizes(), ", expected as many dimensions as x1 of sizes ",
              x1.sizes(), " and points as long");
  const std::string_view gradient = call.op.schema().arguments()[0].name();  // differs by version
  checkSaved(call, "aten._cdist_forward.default",
             {{gradient, 0}, {"cdist", 0, SavedOperand::Layout::kContiguous}});
}

void checkSoftmaxBackward(const TracedCall& call) {
  const Operands operands(call);
  operands.checkSizes("output", operands.tensor("grad_output").sizes());
}

constexpr OperandRule kRules[] = {
    {"aten._cdist_backward", checkDistances},
    {"aten._log_softmax_backward_data", checkSoftmaxBackward},
    {"aten._softmax_backward_data", checkSoftmaxBackward},
    {"aten.multi_margin_loss_backward", checkMultiMargin},
    {"aten.multilabel_margin_loss_backward", checkMultilabelMargin},
    {"aten.nll_loss2d_backward", checkNllLoss2d},
    {"aten.nll_loss_backward", checkNllLoss},
};

}  // namespace

llvm::ArrayRef<OperandRule> lossOperandRules() { return kRules; }

}  // namespace stowage::runtime
