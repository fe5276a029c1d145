// SPDX-License-Identifier: Apache-2.0
//
// Normalisations: a number for each channel, and statistics as the forward op returns them.
#include "runtime/capture/ops/op_facts.h"
#include "runtime/capture/ops/operand_checks.h"

namespace stowage::runtime {
namespace {

constexpr auto kContiguous = SavedOperand::Layout::kContiguous;

void checkChannels(const TracedCall& call, std::initializer_list<std::string_view> rows) {
  const Operands operands(call);
  const at::Tensor input = operands.tensor("input");
  TORCH_CHECK(input.defined() && input.dim() >= 2,
              "found input without channels, expected at "
              "least two dimensions");
  for (const std::string_view row : rows) operands.checkRow(row, input.size(1));
}

void checkBatchNorm(const TracedCall& call) {
  checkChannels(call, {"weight", "bias", "running_mean", "running_var"});
}

/// Without running statistics those of the batch are taken, whatever is asked for.
void checkBatchNormLegit(const TracedCall& call) {
  checkBatchNorm(call);
  const bool hasStatistics = call.op.name == "aten._native_batch_norm_legit.default";
  TORCH_CHECK(hasStatistics || Operands(call).at("training").toBool(),
              "found training false, expected true without running statistics");
}

void checkUpdateOfStatistics(const TracedCall& call) {
  checkChannels(call, {"running_mean", "running_var"});
}

void checkBatchNormBackward(const TracedCall& call, std::string_view training,
                            std::initializer_list<std::string_view> statistics) {
  checkChannels(call, {"weight", "running_mean", "running_var"});
  const Operands operands(call);
  for (const std::string_view name : statistics) {
    TORCH_CHECK(operands.has(name) || !operands.at(training).toBool(), "found no ", name,
                ", expected the batch's");
  }
  checkSaved(call, "aten.native_batch_norm.default",
             {{"grad_out", 0},
              {"grad_output", 0},
              {"save_mean", 1, kContiguous},
              {"save_invstd", 2, kContiguous},
              {"save_var", 2, kContiguous}},
             {{"training", training}});
}
void checkNativeBatchNormBackward(const TracedCall& call) {
  checkBatchNormBackward(call, "train", {"save_mean", "save_invstd"});
}
void checkOtherBatchNormBackward(const TracedCall& call) {
  checkBatchNormBackward(call, "update", {"save_mean", "save_var"});
}

void checkLayerNormBackward(const TracedCall& call) {
  checkSaved(call, "aten.native_layer_norm.default",
             {{"grad_out", 0}, {"mean", 1, kContiguous}, {"rstd", 2, kContiguous}});
}

void checkGroupNorm(const TracedCall& call) {
  const Operands operands(call);
  for (const std::string_view row : {"weight", "bias"}) {
    operands.checkSizes(row, {operands.at("C").toInt()});
    operands.checkContiguous(row);
  }
}

void checkGroupNormBackward(const TracedCall& call) {
  const Operands operands(call);
  operands.checkContiguous("weight");
  operands.checkNotExpanded("input");
  operands.checkNotExpanded("grad_out");
  checkSaved(call, "aten.native_group_norm.default",
             {{"grad_out", 0}, {"mean", 1, kContiguous}, {"rstd", 2, kContiguous}});
}

void checkWeightNorm(const TracedCall& call) {
  const Operands operands(call);
  const at::Tensor v = operands.tensor("v");
  const int64_t dim = operands.at("dim").toInt();
  TORCH_CHECK(v.dim() > 0 && v.numel() > 0, "found v of sizes ", v.sizes(),
              ", expected elements in at least one dimension");
  TORCH_CHECK(dim == 0 || dim == v.dim() - 1, "found dim ", dim, ", expected 0 or ", v.dim() - 1);
  std::vector<int64_t> sizes(static_cast<size_t>(v.dim()), 1);
  sizes[static_cast<size_t>(dim)] = v.size(dim);
  operands.checkSizes("g", sizes);
  operands.checkContiguous("g");
  operands.checkContiguous("v");
}

void checkWeightNormBackward(const TracedCall& call) {
  const Operands operands(call);
  for (const std::string_view name : {"grad_w", "saved_v", "saved_g"}) {
    operands.checkContiguous(name);
  }
  checkSaved(call, "aten._weight_norm_interface.default",
             {{"grad_w", 0}, {"saved_norms", 1, kContiguous}},
             {{"v", "saved_v"}, {"g", "saved_g"}});
}

constexpr OperandRule kRules[] = {
    {"aten._batch_norm_with_update", checkBatchNorm},
    {"aten._native_batch_norm_legit", checkBatchNormLegit},
    {"aten._weight_norm_interface", checkWeightNorm},
    {"aten._weight_norm_interface_backward", checkWeightNormBackward},
    {"aten.batch_norm_backward", checkOtherBatchNormBackward},
    {"aten.batch_norm_update_stats", checkUpdateOfStatistics},
    {"aten.native_batch_norm", checkBatchNorm},
    {"aten.native_batch_norm_backward", checkNativeBatchNormBackward},
    {"aten.native_group_norm", checkGroupNorm},
    {"aten.native_group_norm_backward", checkGroupNormBackward},
    {"aten.native_layer_norm_backward", checkLayerNormBackward},
};

}  // namespace

llvm::ArrayRef<OperandRule> normOperandRules() { return kRules; }

}  // namespace stowage::runtime
