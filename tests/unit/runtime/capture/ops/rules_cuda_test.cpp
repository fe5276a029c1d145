// SPDX-License-Identifier: Apache-2.0
//
// Ops that have no kernel for the CPU: what the rule says for CUDA against a stated expectation,
// which is what the real op returned on an H200 with libtorch 2.11. Where the process has a GPU the
// real op is asked again.

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <gtest/gtest.h>

#include "tests/support/op_agreement.h"
#include "tests/unit/runtime/capture/ops/rule_checks.h"

namespace stowage::tests {
namespace {

struct CudaCase {
  const char* op;
  std::function<Tensors()> inputs;
  Call code;
  const char* results;
};

using Inputs = std::function<Tensors()>;

Tensors matrices() {
  return {at::rand({16, 32}).to(at::kBFloat16), at::rand({48, 32}).to(at::kBFloat16).t(),
          at::rand({48, 16}).t()};
}
Tensors batches() {
  return {at::rand({3, 16, 32}).to(at::kBFloat16),
          at::rand({3, 48, 32}).to(at::kBFloat16).transpose(1, 2), at::rand({48})};
}
Tensors eighths() {
  return {at::rand({32, 64}).to(at::kFloat8_e4m3fn), at::rand({48, 64}).to(at::kFloat8_e4m3fn).t(),
          at::ones({})};
}
Tensors groups() {
  return {at::rand({32, 64}).to(at::kFloat8_e4m3fn),
          at::rand({4, 48, 64}).to(at::kFloat8_e4m3fn).transpose(1, 2), at::ones({32}),
          at::ones({4, 48}), at::arange(8, 40, 8, at::kInt)};
}
Tensors sparseGroups() {
  return {at::rand({32, 64}).to(at::kBFloat16),
          at::rand({4, 52, 64}).to(at::kBFloat16).transpose(1, 2), at::arange(8, 40, 8, at::kInt)};
}
/// A weight, and its length by row laid out from behind.
Tensors halves() {
  return {at::rand({8, 6, 3}).to(at::kHalf), at::rand({1, 1, 8}).permute({2, 1, 0}).to(at::kHalf)};
}
Tensors transposedRows() { return {at::rand({5, 4, 3}).permute({2, 1, 0})}; }

/// An image in bfloat16, mean and inverse deviation of its channels, sums of two devices.
Tensors normInputs(bool channelsLast) {
  at::Tensor image = at::rand({2, 4, 6, 6}).to(at::kBFloat16);
  if (channelsLast) image = image.contiguous(at::MemoryFormat::ChannelsLast);
  return {image,
          at::zeros({4}),
          at::ones({4}),
          at::zeros({2, 4}),
          at::ones({2, 4}),
          at::full({2}, 10.0),
          at::full({1}, 10, at::kInt),
          at::rand({2, 4, 6, 6})};
}
const Inputs kRows = [] { return normInputs(false); };
const Inputs kLast = [] { return normInputs(true); };

/// Queries, keys, values: [batch, tokens, heads, width], heads first in memory.
Tensors attentionInputs() {
  Tensors made;
  for (int i = 0; i < 3; ++i) {
    made.push_back(at::rand({2, 4, 64, 64}).to(at::kBFloat16).transpose(1, 2));
  }
  return made;
}
Tensors images() {
  return {at::rand({2, 6, 9, 9}).contiguous(at::MemoryFormat::ChannelsLast), at::rand({4, 6, 3, 3}),
          at::rand({6, 4, 3, 3}), at::rand({6, 1, 3, 3}), at::rand({2, 4, 9, 9})};
}

const int64_t kOnes[] = {1, 1}, kZeros[] = {0, 0}, kThrees[] = {3, 3}, kThree3[] = {3, 3, 3},
              kOne3[] = {1, 1, 1};

std::vector<CudaCase> matrixCases() {
  return {
      {"aten.mm.dtype", matrices, [](const Tensors& t) { at::mm(t[0], t[1], at::kFloat); },
       "(Float[16, 48] strides=[48, 1] offset=0 #2 3072 B)"},
      {"aten.addmm.dtype", matrices,
       [](const Tensors& t) { at::addmm(t[2], t[0], t[1], at::kFloat); },
       "(Float[16, 48] strides=[48, 1] offset=0 #3 3072 B)"},
      {"aten.bmm.dtype", batches, [](const Tensors& t) { at::bmm(t[0], t[1], at::kFloat); },
       "(Float[3, 16, 48] strides=[768, 48, 1] offset=0 #2 9216 B)"},
      {"aten.baddbmm.dtype", batches,
       [](const Tensors& t) { at::baddbmm(t[2], t[0], t[1], at::kFloat); },
       "(Float[3, 16, 48] strides=[768, 48, 1] offset=0 #3 9216 B)"},
      {"aten._scaled_mm_v2.default", eighths,
       [](const Tensors& t) {
         const Tensors scale = {t[2]};
         at::_scaled_mm_v2(t[0], t[1], scale, kZeros[0], kZeros[0], scale, kZeros[0], kZeros[0], {},
                           at::kBFloat16);
       },
       "(BFloat16[32, 48] strides=[48, 1] offset=0 #3 3072 B)"},
      {"aten._scaled_grouped_mm.default", groups,
       [](const Tensors& t) {
         at::_scaled_grouped_mm(t[0], t[1], t[2], t[3], t[4], {}, {}, at::kBFloat16, true);
       },
       "(BFloat16[32, 48] strides=[48, 1] offset=0 #5 3072 B)"},
      {"aten._grouped_mm.default", sparseGroups,
       [](const Tensors& t) { at::_grouped_mm(t[0], t[1], t[2]); },
       "(BFloat16[32, 52] strides=[56, 1] offset=0 #3 3576 B)"},
      {"aten._weight_int4pack_mm.default",
       [] {
         return Tensors{at::rand({8, 64}).to(at::kBFloat16), at::zeros({8, 2, 32, 1}, at::kInt),
                        at::ones({2, 64, 2}).to(at::kBFloat16)};
       },
       [](const Tensors& t) { at::_weight_int4pack_mm(t[0], t[1], 32, t[2]); },
       "(BFloat16[8, 64] strides=[64, 1] offset=0 #3 1024 B)"},
  };
}

std::vector<CudaCase> normCases() {
  return {
      {"aten.batch_norm_stats.default", kRows,
       [](const Tensors& t) { at::batch_norm_stats(t[0], 1e-5); },
       "(Float[4] strides=[1] offset=0 #1 16 B) "
       "(Float[4] strides=[1] offset=0 #2 16 B)"},
      {"aten.batch_norm_elemt.default", kLast,
       [](const Tensors& t) { at::batch_norm_elemt(t[0], t[2], t[1], t[1], t[2], 1e-5); },
       "(BFloat16[2, 4, 6, 6] strides=[144, 1, 24, 4] offset=0 #3 576 B)"},
      {"aten.batch_norm_gather_stats.default", kRows,
       [](const Tensors& t) {
         at::batch_norm_gather_stats(t[0], t[3], t[4], t[1], t[2], 0.1, 1e-5, 20);
       },
       "(Float[4] strides=[1] offset=0 #5 16 B) "
       "(Float[4] strides=[1] offset=0 #6 16 B)"},
      {"aten.batch_norm_gather_stats_with_counts.default", kRows,
       [](const Tensors& t) {
         at::batch_norm_gather_stats_with_counts(t[0], t[3], t[4], t[1], t[2], 0.1, 1e-5, t[5]);
       },
       "(Float[4] strides=[1] offset=0 #6 16 B) "
       "(Float[4] strides=[1] offset=0 #7 16 B)"},
      {"aten.batch_norm_backward_reduce.default", kRows,
       [](const Tensors& t) {
         at::batch_norm_backward_reduce(t[0], t[0], t[1], t[2], t[2], true, true, false);
       },
       "(Float[4] strides=[1] offset=0 #3 16 B) "
       "(Float[4] strides=[1] offset=0 #4 16 B) "
       "(Float[4] strides=[1] offset=0 #5 16 B) "
       "(undefined)"},
      {"aten.batch_norm_backward_reduce.default", kLast,
       [](const Tensors& t) {
         at::batch_norm_backward_reduce(t[0], t[0], t[1], t[2], {}, false, false, false);
       },
       "(Float[4] strides=[1] offset=0 #3 16 B) "
       "(Float[4] strides=[1] offset=0 #4 16 B) "
       "(Float[0] strides=[1] offset=0 #5 0 B) "
       "(Float[0] strides=[1] offset=0 #6 0 B)"},
      {"aten.batch_norm_backward_elemt.default", kLast,
       [](const Tensors& t) {
         at::batch_norm_backward_elemt(t[0], t[0], t[1], t[2], t[2], t[1], t[1], t[6]);
       },
       "(BFloat16[2, 4, 6, 6] strides=[144, 1, 24, 4] offset=0 #4 576 B)"},
      {"aten.batch_norm_backward_elemt.default", kLast,
       [](const Tensors& t) {
         at::batch_norm_backward_elemt(t[0].contiguous(), t[0], t[1], t[2], t[2], t[1], t[1], t[6]);
       },
       "(BFloat16[2, 4, 6, 6] strides=[144, 36, 6, 1] offset=0 #5 576 B)"},
      {"aten._fused_rms_norm_backward.default", kLast,
       [](const Tensors& t) {
         const at::Tensor rstd = at::ones({2, 4, 6, 1}, t[1].options());
         at::_fused_rms_norm_backward(t[0], t[0], {6}, rstd, at::ones({6}, t[0].options()),
                                      {true, true});
       },
       "(BFloat16[2, 4, 6, 6] strides=[144, 36, 6, 1] offset=0 #3 576 B) "
       "(BFloat16[6] strides=[1] offset=0 #4 12 B)"},
      {"aten._fused_rms_norm.default", kLast,
       [](const Tensors& t) {
         // Autograd makes it of other ops where no kernel for CUDA is registered.
         const at::AutoDispatchBelowADInplaceOrView below;
         at::_fused_rms_norm(t[0], {6}, at::ones({6}, t[0].options()), 1e-5);
       },
       "(BFloat16[2, 4, 6, 6] strides=[144, 36, 6, 1] offset=0 #2 576 B) "
       "(Float[2, 4, 6, 1] strides=[24, 6, 1, 1] offset=0 #3 192 B)"},
      {"aten.cudnn_batch_norm.default", kRows,
       [](const Tensors& t) {
         at::cudnn_batch_norm(t[7], t[2], t[1], t[1], t[2], true, 0.1, 1e-5);
       },
       "(Float[2, 4, 6, 6] strides=[144, 36, 6, 1] offset=0 #3 1152 B) "
       "(Float[4] strides=[1] offset=0 #4 16 B) "
       "(Float[4] strides=[1] offset=0 #5 16 B) "
       "(Byte[0] strides=[1] offset=0 #6 0 B)"},
      {"aten.cudnn_batch_norm_backward.default", kRows,
       [](const Tensors& t) {
         const auto [out, mean, inverse, reserve] =
             at::cudnn_batch_norm(t[7], t[2], t[1], t[1], t[2], true, 0.1, 1e-5);
         at::cudnn_batch_norm_backward(t[7], t[7], t[2], t[1], t[2], mean, inverse, 1e-5, reserve);
       },
       "(Float[2, 4, 6, 6] strides=[144, 36, 6, 1] offset=0 #7 1152 B) "
       "(Float[4] strides=[1] offset=0 #8 16 B) "
       "(Float[4] strides=[1] offset=0 #9 16 B)"},
  };
}

std::vector<CudaCase> attentionCases() {
  return {
      {"aten._flash_attention_forward.default", attentionInputs,
       [](const Tensors& t) {
         at::_flash_attention_forward(t[0], t[1], t[2], {}, {}, 64, 64, 0.0, true, false);
       },
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #3 65536 B) "
       "(Float[2, 4, 64] strides=[256, 64, 1] offset=0 #4 2048 B) "
       "(UInt64[2] strides=[1] offset=0 #5 16 B) "
       "(UInt64[] strides=[] offset=0 #6 8 B) "
       "(BFloat16[0] strides=[1] offset=0 #7 0 B)"},
      {"aten._flash_attention_backward.default", attentionInputs,
       [](const Tensors& t) {
         const auto [out, lse, state, unused, mask] =
             at::_flash_attention_forward(t[0], t[1], t[2], {}, {}, 64, 64, 0.0, true, false);
         at::_flash_attention_backward(out, t[0], t[1], t[2], out, lse, {}, {}, 64, 64, 0.0, true,
                                       state, unused);
       },
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #8 65536 B) "
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #9 65536 B) "
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #10 65536 B)"},
      {"aten._efficient_attention_forward.default", attentionInputs,
       [](const Tensors& t) {
         at::_efficient_attention_forward(t[0], t[1], t[2], {}, {}, {}, {}, {}, 0.1, 0, true);
       },
       "(BFloat16[2, 64, 4, 64] strides=[16384, 256, 64, 1] offset=0 #3 65536 B) "
       "(Float[2, 4, 64] strides=[256, 64, 1] offset=0 #4 2048 B) "
       "(Long[] strides=[] offset=0 #5 8 B) "
       "(Long[] strides=[] offset=0 #6 8 B)"},
      {"aten._efficient_attention_backward.default", attentionInputs,
       [](const Tensors& t) {
         const auto [out, lse, seed, offset, tokens, keys] =
             at::_efficient_attention_forward(t[0], t[1], t[2], {}, {}, {}, {}, {}, 0.1, 0, true);
         at::_efficient_attention_backward(out, t[0], t[1], t[2], {}, out, {}, {}, 64, 64, lse, 0.1,
                                           seed, offset, 0, false);
       },
       "(BFloat16[2, 64, 4, 64] strides=[16384, 256, 64, 1] offset=0 #7 65536 B) "
       "(BFloat16[2, 64, 4, 64] strides=[16384, 256, 64, 1] offset=0 #8 65536 B) "
       "(BFloat16[2, 64, 4, 64] strides=[16384, 256, 64, 1] offset=0 #9 65536 B) "
       "(undefined)"},
      {"aten._cudnn_attention_forward.default", attentionInputs,
       [](const Tensors& t) {
         at::_cudnn_attention_forward(t[0].transpose(1, 2), t[1].transpose(1, 2),
                                      t[2].transpose(1, 2), {}, {}, {}, 64, 64, true, 0.1, true);
       },
       "(BFloat16[2, 4, 64, 64] strides=[16384, 4096, 64, 1] offset=0 #3 65536 B) "
       "(Float[2, 4, 64, 1] strides=[256, 64, 1, 1] offset=0 #4 2048 B) "
       "(undefined) "
       "(undefined) "
       "(Long[] strides=[] offset=0 #5 8 B) "
       "(Long[] strides=[] offset=0 #6 8 B) "
       "(undefined)"},
      {"aten._scaled_dot_product_flash_attention.default", attentionInputs,
       [](const Tensors& t) {
         at::_scaled_dot_product_flash_attention(t[0], t[1], t[2], 0.1, true);
       },
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #3 65536 B) "
       "(Float[2, 64, 4] strides=[256, 4, 1] offset=0 #4 2048 B) "
       "(undefined) "
       "(undefined) "
       "(UInt64[2] strides=[1] offset=0 #5 16 B) "
       "(UInt64[] strides=[] offset=0 #6 8 B) "
       "(BFloat16[0] strides=[1] offset=0 #7 0 B)"},
      {"aten._scaled_dot_product_flash_attention_backward.default", attentionInputs,
       [](const Tensors& t) {
         const auto [out, lse, a, b, c, d, state, unused, mask] =
             at::_scaled_dot_product_flash_attention(t[0], t[1], t[2], 0.1, true);
         at::_scaled_dot_product_flash_attention_backward(out, t[0], t[1], t[2], out, lse, {}, {},
                                                          64, 4, 0.1, true, state, unused);
       },
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #8 65536 B) "
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #9 65536 B) "
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #10 65536 B)"},
      {"aten._scaled_dot_product_efficient_attention.default", attentionInputs,
       [](const Tensors& t) {
         at::_scaled_dot_product_efficient_attention(t[0], t[1], t[2], {}, true, 0.1, true);
       },
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #3 65536 B) "
       "(Float[2, 64, 32] strides=[2048, 32, 1] offset=0 #4 16384 B) "
       "(Long[] strides=[] offset=0 #5 8 B) "
       "(Long[] strides=[] offset=0 #6 8 B)"},
      {"aten._scaled_dot_product_efficient_attention_backward.default", attentionInputs,
       [](const Tensors& t) {
         const at::Tensor bias = at::zeros({2, 64, 4, 4}, t[0].options());
         const auto [out, lse, seed, offset] = at::_scaled_dot_product_efficient_attention(
             t[0].transpose(1, 2).slice(2, 0, 4), t[1].transpose(1, 2).slice(2, 0, 4),
             t[2].transpose(1, 2).slice(2, 0, 4), {}, true);
         at::_scaled_dot_product_efficient_attention_backward(
             out, t[0].transpose(1, 2).slice(2, 0, 4), t[1].transpose(1, 2).slice(2, 0, 4),
             t[2].transpose(1, 2).slice(2, 0, 4), {}, out, lse, seed, offset, 0.0,
             {true, true, true, false});
       },
       "(BFloat16[2, 4, 4, 64] strides=[1024, 64, 256, 1] offset=0 #8 4096 B) "
       "(BFloat16[2, 4, 4, 64] strides=[1024, 64, 256, 1] offset=0 #9 4096 B) "
       "(BFloat16[2, 4, 4, 64] strides=[1024, 64, 256, 1] offset=0 #10 4096 B) "
       "(undefined)"},
      {"aten._scaled_dot_product_cudnn_attention.default", attentionInputs,
       [](const Tensors& t) {
         at::_scaled_dot_product_cudnn_attention(t[0], t[1], t[2], {}, true, 0.1, true);
       },
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #3 65536 B) "
       "(Float[2, 64, 4, 1] strides=[256, 4, 1, 1] offset=0 #4 2048 B) "
       "(undefined) "
       "(undefined) "
       "(Long[] strides=[] offset=0 #5 8 B) "
       "(Long[] strides=[] offset=0 #6 8 B) "
       "(undefined)"},
      {"aten._scaled_dot_product_cudnn_attention_backward.default", attentionInputs,
       [](const Tensors& t) {
         const auto [out, lse, a, b, c, d, seed, offset, mask] =
             at::_scaled_dot_product_cudnn_attention(t[0], t[1], t[2], {}, true, 0.1, true);
         at::_scaled_dot_product_cudnn_attention_backward(out, t[0], t[1], t[2], out, lse, seed,
                                                          offset, {}, {}, {}, 64, 4, 0.1, true);
       },
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #7 65536 B) "
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #8 65536 B) "
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #9 65536 B)"},
      {"aten._cudnn_attention_backward.default", attentionInputs,
       [](const Tensors& t) {
         const auto [out, lse, a, b, c, d, seed, offset, mask] =
             at::_cudnn_attention_forward(t[0], t[1], t[2], {}, {}, {}, 4, 4, true, 0.1, true);
         at::_cudnn_attention_backward(out, t[0], t[1], t[2], out, lse, seed, offset, {}, {}, {},
                                       64, 4, 0.1, true);
       },
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #7 65536 B) "
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #8 65536 B) "
       "(BFloat16[2, 64, 4, 64] strides=[16384, 64, 4096, 1] offset=0 #9 65536 B)"},
  };
}

std::vector<CudaCase> otherCases() {
  return {
      // Asks first whether cuDNN would take it: answered by a rule, and no call of the step.
      {"aten._ctc_loss.default",
       [] {
         return Tensors{at::rand({20, 3, 6}), at::ones({12}, at::kLong)};
       },
       [](const Tensors& t) {
         const std::vector<int64_t> tokens = {20, 20, 20}, lengths = {5, 4, 3};
         at::ctc_loss(t[0], t[1], tokens, lengths, 0, 0);
       },
       "(Float[3] strides=[1] offset=0 #3 12 B) "
       "(Float[3, 20, 11] strides=[220, 11, 1] offset=0 #4 2640 B)"},
      {"aten._fused_dropout.default", transposedRows,
       [](const Tensors& t) { at::_fused_dropout(t[0], 0.7); },
       "(Float[3, 4, 5] strides=[1, 3, 12] offset=0 #1 240 B) "
       "(Byte[3, 4, 5] strides=[1, 3, 12] offset=0 #2 60 B)"},
      {"aten._masked_scale.default", transposedRows,
       [](const Tensors& t) {
         at::_masked_scale(t[0], at::ones({3, 4, 5}, t[0].options().dtype(at::kByte)), 2.0);
       },
       "(Float[3, 4, 5] strides=[20, 5, 1] offset=0 #2 240 B)"},
      {"aten._cudnn_ctc_loss.default",
       [] {
         return Tensors{at::rand({20, 3, 6})};
       },
       [targets = at::ones({12}, at::kInt)](const Tensors& t) {
         const std::vector<int64_t> tokens = {20, 20, 20}, lengths = {5, 4, 3};
         at::_cudnn_ctc_loss(t[0], targets, tokens, lengths, 0, true, false);
       },
       "(Float[3] strides=[1] offset=0 #2 12 B) "
       "(Float[20, 3, 6] strides=[18, 6, 1] offset=0 #3 1440 B)"},
      {"aten.cudnn_grid_sampler.default",
       [] {
         return Tensors{at::rand({2, 4, 6, 6}), at::rand({2, 3, 5, 2})};
       },
       [](const Tensors& t) { at::cudnn_grid_sampler(t[0], t[1]); },
       "(Float[2, 4, 3, 5] strides=[60, 15, 5, 1] offset=0 #2 480 B)"},
      {"aten.cudnn_grid_sampler_backward.default",
       [] {
         return Tensors{at::rand({2, 4, 6, 6}), at::rand({2, 3, 5, 2})};
       },
       [](const Tensors& t) {
         at::cudnn_grid_sampler_backward(t[0], t[1], at::ones({2, 4, 3, 5}, t[0].options()));
       },
       "(Float[2, 4, 6, 6] strides=[144, 36, 6, 1] offset=0 #3 1152 B) "
       "(Float[2, 3, 5, 2] strides=[30, 10, 2, 1] offset=0 #4 240 B)"},
      {"aten.cudnn_convolution.default", images,
       [](const Tensors& t) {
         at::cudnn_convolution(t[0], t[1], kOnes, kOnes, kOnes, 1, false, true, false);
       },
       "(Float[2, 4, 9, 9] strides=[324, 1, 36, 4] offset=0 #2 2592 B)"},
      {"aten.cudnn_convolution_transpose.default", images,
       [](const Tensors& t) {
         at::cudnn_convolution_transpose(t[0], t[2], kOnes, kZeros, kOnes, kOnes, 1, false, true,
                                         false);
       },
       "(Float[2, 4, 9, 9] strides=[324, 1, 36, 4] offset=0 #2 2592 B)"},
      {"aten.cudnn_convolution_relu.default", images,
       [](const Tensors& t) { at::cudnn_convolution_relu(t[0], t[1], {}, kOnes, kOnes, kOnes, 1); },
       "(Float[2, 4, 9, 9] strides=[324, 1, 36, 4] offset=0 #2 2592 B)"},
      {"aten.cudnn_convolution_add_relu.default", images,
       [](const Tensors& t) {
         at::cudnn_convolution_add_relu(t[0], t[1], t[4].contiguous(at::MemoryFormat::ChannelsLast),
                                        1.0, {}, kOnes, kOnes, kOnes, 1);
       },
       "(Float[2, 4, 9, 9] strides=[324, 1, 36, 4] offset=0 #4 2592 B)"},
      {"aten._conv_depthwise2d.default", images,
       [](const Tensors& t) {
         at::_conv_depthwise2d(t[0], t[3], kThrees, {}, kOnes, kOnes, kOnes);
       },
       "(Float[2, 6, 9, 9] strides=[486, 81, 9, 1] offset=0 #2 3888 B)"},
      {"aten.conv_depthwise3d.default",
       [] {
         return Tensors{at::rand({2, 4, 5, 6, 7}), at::rand({4, 1, 3, 3, 3})};
       },
       [](const Tensors& t) { at::conv_depthwise3d(t[0], t[1], kThree3, {}, kOne3, kOne3, kOne3); },
       "(Float[2, 4, 5, 6, 7] strides=[840, 210, 42, 7, 1] offset=0 #2 6720 B)"},
      {"aten._weight_norm_interface.default", halves,
       [](const Tensors& t) { at::_weight_norm_interface(t[0], t[1], 0); },
       "(Half[8, 6, 3] strides=[18, 3, 1] offset=0 #2 288 B) "
       "(Float[8, 1, 1] strides=[1, 8, 8] offset=0 #3 32 B)"},
  };
}

void check(const std::vector<CudaCase>& cases) {
  for (const CudaCase& c : cases) {
    EXPECT_EQ(resultsOnCuda(c.op, {c.op, c.inputs, c.code}), c.results) << c.op;
  }
}

}  // namespace

void checkOpsOfCudaAlone() {
  check(matrixCases());
  check(normCases());
  check(attentionCases());
  check(otherCases());
}

TEST(CaptureRulesOfCuda, AreWhatAGpuReturned) { checkOpsOfCudaAlone(); }

}  // namespace stowage::tests
