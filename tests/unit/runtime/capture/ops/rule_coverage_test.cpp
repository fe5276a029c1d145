// SPDX-License-Identifier: Apache-2.0
//
// Walks the table of shape rules and fails when no row checks a rule. Walks the ops that training
// meets and whose results libtorch 2.11 has no usable kernel without data for: each is answered, by
// a rule or by libtorch after all, and a row has checked the answer; what is refused is named here.

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph/op_table.h"
#include "runtime/capture/ops/op_facts.h"
#include "tests/support/op_agreement.h"
#include "tests/unit/runtime/capture/ops/rule_checks.h"

namespace stowage::tests {
namespace {

using runtime::OpFacts;
using runtime::ResultsBy;

const std::set<std::string>& checkedOps() {
  static const bool kDone = [] {
    for (const auto check : kRuleChecks) check();
    checkOpsOfCudaAlone();
    return true;
  }();
  static_cast<void>(kDone);
  return agreedOps();
}

/// Its rule only refuses (capture_refusal_test.cpp).
const std::set<std::string> kRefused = {"aten._ctc_loss.Tensor"};
/// Answer questions of libtorch's and are no calls of a step: without them the row of `_ctc_loss`
/// on CUDA fails.
const std::set<std::string> kAnswers = {"aten._use_cudnn_ctc_loss.default",
                                        "aten._use_miopen_ctc_loss.default"};

/// The ops without a usable kernel for tensors without data that training meets.
const std::vector<std::string> kListed = {
    // Attention.
    "_cudnn_attention_backward.default", "_cudnn_attention_forward.default",
    "_efficient_attention_backward.default", "_efficient_attention_forward.default",
    "_flash_attention_backward.default", "_flash_attention_forward.default",
    "_native_multi_head_attention.default", "_safe_softmax.default",
    "_scaled_dot_product_cudnn_attention.default",
    "_scaled_dot_product_cudnn_attention_backward.default",
    "_scaled_dot_product_efficient_attention.default",
    "_scaled_dot_product_efficient_attention_backward.default",
    "_scaled_dot_product_flash_attention.default",
    "_scaled_dot_product_flash_attention_backward.default",
    "_scaled_dot_product_flash_attention_for_cpu.default",
    "_scaled_dot_product_flash_attention_for_cpu_backward.default",
    // Normalisation.
    "_batch_norm_with_update.default", "_fused_rms_norm.default",
    "_fused_rms_norm_backward.default", "_native_batch_norm_legit.default",
    "_native_batch_norm_legit.no_stats", "batch_norm_backward.default",
    "batch_norm_backward_elemt.default", "batch_norm_backward_reduce.default",
    "batch_norm_elemt.default", "batch_norm_gather_stats.default",
    "batch_norm_gather_stats_with_counts.default", "batch_norm_stats.default",
    "cudnn_batch_norm.default", "cudnn_batch_norm_backward.default", "native_batch_norm.default",
    "native_batch_norm_backward.default", "native_group_norm.default",
    "native_group_norm_backward.default", "native_layer_norm.default",
    "native_layer_norm_backward.default",
    // Convolution.
    "_conv_depthwise2d.default", "_slow_conv2d_backward.output_mask",
    "_slow_conv2d_forward.default", "col2im.default", "conv_depthwise3d.default",
    "convolution.default", "convolution_backward.default", "cudnn_convolution.default",
    "cudnn_convolution_add_relu.default", "cudnn_convolution_relu.default",
    "cudnn_convolution_transpose.default", "im2col.default",
    // Tables and indices.
    "_embedding_bag.default", "_embedding_bag_backward.default",
    "_embedding_bag_dense_backward.default", "_embedding_bag_forward_only.default",
    "_embedding_bag_per_sample_weights_backward.default", "bucketize.Tensor", "embedding.default",
    "embedding_dense_backward.default", "flip.default", "histc.default", "index_select.default",
    "repeat_interleave.Tensor", "roll.default", "searchsorted.Tensor", "take.default",
    "unfold_backward.default",
    // Losses.
    "_ctc_loss.Tensor", "_ctc_loss.default", "_ctc_loss_backward.Tensor",
    "_ctc_loss_backward.default", "binary_cross_entropy.default",
    "binary_cross_entropy_backward.default", "huber_loss.default", "log_sigmoid_backward.default",
    "log_sigmoid_forward.default", "mse_loss_backward.default", "multi_margin_loss.default",
    "nll_loss2d_backward.default", "nll_loss2d_forward.default",
    "smooth_l1_loss_backward.grad_input",
    // Element by element, and reductions.
    "_aminmax.default", "_aminmax.dim", "_logcumsumexp.default", "_prelu_kernel.default",
    "_prelu_kernel_backward.default", "count_nonzero.dim_IntList", "dot.default",
    "floor_divide.default", "glu_backward.default", "hardswish.default",
    "hardswish_backward.default", "hardtanh.default", "hardtanh_backward.default", "isnan.default",
    "kthvalue.default", "max.default", "median.default", "median.dim", "min.default",
    "mode.default", "nansum.default", "prod.default", "relu.default", "remainder.Scalar_Tensor",
    "rsub.Tensor", "std.correction", "std_mean.correction", "trace.default", "var.correction",
    "var_mean.correction", "vdot.default", "where.self", "where.self_out",
    // Random draws.
    "_fused_dropout.default", "multinomial.default", "native_dropout.default",
    "native_dropout_backward.default", "poisson.default", "rrelu_with_noise.default",
    // Images.
    "_adaptive_avg_pool2d.default", "_adaptive_avg_pool2d_backward.default",
    "_adaptive_avg_pool3d.default", "_adaptive_avg_pool3d_backward.default",
    "channel_shuffle.default", "grid_sampler_2d.default", "grid_sampler_2d_backward.default",
    "grid_sampler_3d.default", "grid_sampler_3d_backward.default",
    "max_pool3d_with_indices.default", "max_pool3d_with_indices_backward.default",
    "reflection_pad1d_backward.default", "reflection_pad2d_backward.default",
    "reflection_pad3d_backward.default", "replication_pad1d_backward.default",
    "replication_pad2d_backward.default", "replication_pad3d_backward.default",
    // Small types.
    "_int_mm.default", "_scaled_grouped_mm.default", "_scaled_mm.default", "_scaled_mm_v2.default",
    "_weight_int4pack_mm.default", "_weight_int8pack_mm.default", "addbmm.default", "addmm.dtype",
    "baddbmm.dtype", "bmm.dtype", "mm.dtype",
    // Signals and complex numbers.
    "_assert_async.msg", "_conj_physical.default", "_fft_c2c.default", "_fft_c2r.default",
    "_fft_r2c.default", "angle.default", "complex.default", "conj_physical_.default",
    "logit.default", "polar.default", "rot90.default",
    // Linear algebra and distances.
    "_cdist_backward.default", "_cdist_forward.default", "_pdist_backward.default",
    "_pdist_forward.default", "_weight_norm_interface.default",
    "_weight_norm_interface_backward.default", "linalg_householder_product.default",
    "linalg_matrix_exp.default", "linalg_solve_triangular.default",
    // Updates.
    "_amp_foreach_non_finite_check_and_unscale_.default", "_fused_adagrad_.default",
    "_fused_adagrad_.tensor_lr", "_fused_adam_.default", "_fused_adam_.tensor_lr",
    "_fused_adamw_.default", "_fused_adamw_.tensor_lr", "_fused_sgd_.default",
    "_fused_sgd_.tensor_lr"};

std::optional<OpFacts> factsOf(const std::string& op) {
  const size_t last = op.rfind('.');
  const std::string overload = op.substr(last + 1);
  const auto handle = c10::Dispatcher::singleton().findSchema(
      {"aten::" + op.substr(5, last - 5), overload == "default" ? "" : overload});
  return handle ? std::optional<OpFacts>(std::in_place, *handle) : std::nullopt;
}

TEST(CaptureRuleCoverage, EveryRuleHasARow) {
  for (const runtime::NamedRule& rule : runtime::allShapeRules()) {
    EXPECT_TRUE(factsOf(rule.op)) << rule.op << " is no op";
    if (kRefused.count(rule.op) != 0 || kAnswers.count(rule.op) != 0) continue;
    EXPECT_EQ(checkedOps().count(rule.op), 1u) << rule.op << " has a rule that no row checks";
  }
}

TEST(CaptureRuleCoverage, EveryListedOpIsAnsweredAndChecked) {
  std::map<ResultsBy, int> counts;
  for (const std::string& name : kListed) {
    const std::string op = "aten." + name;
    const auto facts = factsOf(op);
    ASSERT_TRUE(facts) << op << " is no op";
    EXPECT_EQ(facts->refusal, nullptr) << op;
    if (kRefused.count(op) != 0) continue;
    ++counts[facts->resultsBy];
    EXPECT_EQ(checkedOps().count(op), 1u) << op << " is answered, but no row checks it";
  }
  // README.md states these numbers.
  EXPECT_EQ(kListed.size(), 174u);
  EXPECT_EQ(counts[ResultsBy::kRule], 170);
  EXPECT_EQ(counts[ResultsBy::kMeta], 3);
  EXPECT_EQ(counts[ResultsBy::kNothing] + counts[ResultsBy::kComposite], 0);
}

TEST(CaptureRuleCoverage, ThePlannerKnowsEveryOpWithARule) {
  for (const runtime::NamedRule& rule : runtime::allShapeRules()) {
    if (kRefused.count(rule.op) != 0 || kAnswers.count(rule.op) != 0) continue;
    EXPECT_TRUE(ir::lookUpOp(rule.op).known) << rule.op;
  }
}

// An op whose draws are not marked would be recomputed with other numbers, or be moved.
TEST(CaptureRuleCoverage, OpsThatDrawCarryTheRandomState) {
  for (const char* op :
       {"aten._fused_dropout.default", "aten.bernoulli.default", "aten.binomial.default",
        "aten.multinomial.default", "aten.native_dropout.default", "aten.normal_.default",
        "aten.poisson.default", "aten.randperm.default", "aten.randperm.generator",
        "aten.rrelu_with_noise.default", "aten.rrelu_with_noise_.default"}) {
    EXPECT_TRUE(factsOf(op)->random) << op;
    EXPECT_TRUE(ir::lookUpOp(op).random) << op;
  }
}

// Their schemas do not say that they update running statistics.
TEST(CaptureRuleCoverage, BatchNormWritesItsStatistics) {
  const auto written = [](const char* op) {
    const auto facts = factsOf(op);
    return std::vector<uint32_t>(facts->writtenArguments.begin(), facts->writtenArguments.end());
  };
  const std::vector<uint32_t> third = {3, 4}, first = {1, 2};
  EXPECT_EQ(written("aten.native_batch_norm.default"), third);
  EXPECT_EQ(written("aten._native_batch_norm_legit.default"), third);
  EXPECT_EQ(written("aten._batch_norm_with_update.default"), third);
  EXPECT_EQ(written("aten.batch_norm_gather_stats.default"), third);
  EXPECT_EQ(written("aten.batch_norm_gather_stats_with_counts.default"), third);
  EXPECT_EQ(written("aten.batch_norm_update_stats.default"), first);
}

}  // namespace
}  // namespace stowage::tests
