// SPDX-License-Identifier: Apache-2.0
//
// More ops that training meets, against the real ops: choices, scans, random draws, bags of
// embeddings, losses, overloads of batch norm, products of small types, updates.

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "tests/support/op_agreement.h"
#include "tests/unit/runtime/capture/ops/rule_checks.h"

namespace stowage::tests {
namespace {

const std::vector<int64_t> kShape = {3, 4, 5};

at::TensorOptions longs(const at::Tensor& like) { return like.options().dtype(at::kLong); }

/// Row-major tensors of whole numbers.
Tensors integers() {
  return {at::randint(1, 5, {3, 4}, at::kInt), at::randint(1, 5, {3, 4}, at::kLong)};
}

}  // namespace

void checkChoices() {
  const std::vector<Call> calls = {
      [](const Tensors& t) { at::kthvalue(t[0], 2, 0); },
      [](const Tensors& t) { at::kthvalue(t[0], 1, -1, true); },
      [](const Tensors& t) { at::mode(t[0], 1); },
      [](const Tensors& t) { at::mode(t[0], 0, true); },
      [](const Tensors& t) { at::median(t[0]); },
      [](const Tensors& t) { at::median(t[0], 1); },
      [](const Tensors& t) { at::median(t[0], -1, true); },
      [](const Tensors& t) { at::nanmedian(t[0]); },
      [](const Tensors& t) { at::nanmedian(t[0], 1, true); },
      [](const Tensors& t) { at::_aminmax(t[0]); },
      [](const Tensors& t) { at::_aminmax(t[0], 1, true); },
      [](const Tensors& t) { at::max(t[0]); },
      [](const Tensors& t) { at::prod(t[0]); },
      [](const Tensors& t) { at::prod(t[0], at::kDouble); },
      [](const Tensors& t) { at::nansum(t[0], {0}); },
      [](const Tensors& t) {
        at::nansum(t[0], {0, 1}, true, at::kDouble);
      },
      [](const Tensors& t) { at::trace(t[0].flatten(1)); },
      [](const Tensors& t) { at::logsumexp(t[0], {1}); },
      [](const Tensors& t) { at::norm(t[0], 2, {1}); },
  };
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    expectAgreementOn(layoutsOf(kShape, dtype), calls);
  }
  // The last one is for real numbers.
  expectAgreementOn(integers(), {calls.begin(), calls.end() - 1}, Where::kCpu);
  expectAgreementOn({at::rand({})}, {[](const Tensors& t) { at::kthvalue(t[0], 1, 0); },
                                     [](const Tensors& t) { at::mode(t[0], 0); },
                                     [](const Tensors& t) { at::median(t[0], 0); }});
}

void checkScans() {
  expectAgreementOn(
      layoutsOf(kShape),
      {[](const Tensors& t) { at::cumsum(t[0], 1); },
       [](const Tensors& t) { at::cumprod(t[0], 1); },
       [](const Tensors& t) { at::cummax(t[0], 1); },
       [](const Tensors& t) { at::cummin(t[0], -1); },
       [](const Tensors& t) { at::logcumsumexp(t[0], 1); },
       [](const Tensors& t) { at::_logcumsumexp(t[0], 1); },
       [](const Tensors& t) {
         at::flip(t[0], {0, 2});
       },
       [](const Tensors& t) { at::roll(t[0], {1}); }, [](const Tensors& t) { at::histc(t[0], 7); },
       [](const Tensors& t) {
         at::take(t[0], at::zeros({5, 2}, longs(t[0])).t());
       },
       [](const Tensors& t) { at::repeat_interleave(t[0], at::full({4}, 2, longs(t[0])), 1, 8); },
       [](const Tensors& t) { at::repeat_interleave(t[0], 2, 1); }});
}

void checkRandomOps() {
  expectAgreementOn(
      layoutsOf(kShape),
      {[](const Tensors& t) { at::poisson(t[0]); },
       [](const Tensors& t) { at::binomial(t[0], t[0]); },
       [](const Tensors& t) { at::bernoulli(t[0]); },
       [](const Tensors& t) { at::multinomial(t[0].flatten(1), 2); },
       [](const Tensors& t) { at::multinomial(t[0].flatten(1), 1, true); },
       [](const Tensors& t) { at::multinomial(t[0].select(0, 0).select(0, 0), 2); },
       [](const Tensors& t) { at::randperm(9, longs(t[0])); },
       [](const Tensors& t) { at::randperm(9, std::nullopt, t[0].options().dtype(at::kInt)); },
       [](const Tensors& t) {
         const auto [out, mask] = at::native_dropout(t[0], 0.3, true);
         at::native_dropout_backward(t[0], mask, 1.5);
       },
       [](const Tensors& t) {
         at::Tensor noise = at::empty_like(t[0]);
         const at::Tensor out = at::rrelu_with_noise(t[0], noise, 0.1, 0.3, true);
         at::rrelu_with_noise_backward(out, t[0], noise, 0.1, 0.3, true, false);
         at::rrelu_with_noise(t[0], noise, 0.1, 0.3, false);
         at::Tensor copy = t[0].clone();
         at::rrelu_with_noise_(copy, noise, 0.1, 0.3, true);
       }});
}

namespace {

/// An embedding bag and all its gradients.
Call bagCall(int64_t mode, bool hasWeights, bool hasLastOffset, int64_t padding) {
  return [=](const Tensors& t) {
    const at::Tensor indices = at::arange(7, longs(t[0]));
    const at::Tensor offsets = at::arange(0, hasLastOffset ? 8 : 6, 2, longs(t[0]));
    const at::Tensor scales = hasWeights ? at::rand({7}, t[0].options()) : at::Tensor();
    const auto [out, bag, size, largest] = at::_embedding_bag(
        t[0], indices, offsets, false, mode, false, scales, hasLastOffset, padding);
    at::_embedding_bag_forward_only(t[0], indices, offsets, false, mode, false, scales,
                                    hasLastOffset, padding);
    at::_embedding_bag_backward(out, indices, offsets, bag, size, largest, 10, false, mode, false,
                                scales, padding);
    if (bag.numel() > 0) {
      at::_embedding_bag_dense_backward(out, indices, bag, size, largest, 10, false, mode, scales,
                                        padding);
    }
    if (mode == 0) {
      at::_embedding_bag_per_sample_weights_backward(out, t[0], indices, offsets, bag, mode,
                                                     padding);
    }
  };
}

}  // namespace

void checkEmbeddingBags() {
  std::vector<Call> calls;
  for (const bool hasLastOffset : {false, true}) {
    for (const int64_t padding : {-1, 3}) {
      for (const int64_t mode : {0, 1, 2}) {
        calls.push_back(bagCall(mode, false, hasLastOffset, padding));
      }
      calls.push_back(bagCall(0, true, hasLastOffset, padding));
    }
  }
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    expectAgreementOn({at::rand({10, 4}).to(dtype), at::rand({4, 10}).to(dtype).t()}, calls);
  }
}

void checkMoreLosses() {
  expectAgreementOn(layoutsOf({3, 4}), {[](const Tensors& t) {
                      at::Tensor into = at::empty({3, 4}, t[0].options());
                      at::smooth_l1_loss_backward_out(into, t[0], t[0], t[0], 1, 1.0);
                      at::where_out(into, t[0].gt(0.5), t[0], t[0]);
                    }});
  const Tensors rows = layoutsOf({5, 7});
  const Tensors probabilities = layoutsOf({20, 3, 6});
  static const std::vector<int64_t> kTokens = {20, 18, 15}, kTargets = {5, 4, 3};
  for (const int64_t reduction : {0, 1, 2}) {
    expectAgreementOn(
        rows, {[=](const Tensors& t) {
                 const at::Tensor target = at::zeros({5, 7}, longs(t[0]));
                 const auto [loss, flags] =
                     at::multilabel_margin_loss_forward(t[0], target, reduction);
                 at::multilabel_margin_loss_backward(loss, t[0], target, reduction, flags);
               },
               [=](const Tensors& t) {
                 const at::Tensor loss = at::binary_cross_entropy(t[0], t[0], {}, reduction);
                 at::binary_cross_entropy_backward(loss, t[0], t[0], {}, reduction);
               },
               [=](const Tensors& t) {
                 at::smooth_l1_loss_backward(at::smooth_l1_loss(t[0], t[0], reduction), t[0], t[0],
                                             reduction, 1.0);
               },
               [=](const Tensors& t) {
                 at::huber_loss_backward(at::huber_loss(t[0], t[0], reduction), t[0], t[0],
                                         reduction, 1.0);
               },
               [=](const Tensors& t) {
                 const at::Tensor target = at::zeros({5}, longs(t[0]));
                 const at::Tensor loss = at::multi_margin_loss(t[0], target, 1, 1.0, {}, reduction);
                 at::multi_margin_loss_backward(loss, t[0], target, 1, 1.0, {}, reduction);
               }});
    expectAgreementOn(
        {at::rand({2, 7, 3, 4}), at::rand({2, 7, 3, 8}).slice(3, 0, 8, 2)}, {[=](const Tensors& t) {
          const at::Tensor target = at::zeros({2, 3, 4}, longs(t[0]));
          const auto [loss, weight] = at::nll_loss2d_forward(t[0], target, {}, reduction, -100);
          at::nll_loss2d_backward(loss, t[0], target, {}, reduction, -100, weight);
        }});
  }
  expectAgreementOn(
      probabilities,
      {[](const Tensors& t) {
         const at::Tensor target = at::ones({3, 5}, longs(t[0]));
         const auto [loss, alpha] = at::_ctc_loss(t[0], target, kTokens, kTargets, 0, false);
         at::_ctc_loss_backward(loss, t[0], target, kTokens, kTargets, loss, alpha, 0);
       },
       [](const Tensors& t) {
         at::_ctc_loss(t[0], at::ones({12}, longs(t[0])), kTokens, kTargets, 0, true);
       }});
  expectAgreementOn(probabilities, {[](const Tensors& t) {
                      const at::Tensor target = at::ones({3, 5}, longs(t[0]));
                      const at::Tensor tokens = at::full({3}, 20, longs(t[0]));
                      const at::Tensor lengths = at::full({3}, 5, longs(t[0]));
                      const auto [loss, alpha] = at::_ctc_loss(t[0], target, kTokens, kTargets, 0);
                      at::_ctc_loss_backward(loss, t[0], target, tokens, lengths, loss, alpha, 0);
                    }},
                    Where::kCpu);
}

namespace {

/// A batch norm under each of its names, forward and backward.
Call batchNormCall(bool training) {
  return [=](const Tensors& t) {
    const int64_t channels = t[0].size(1);
    const at::TensorOptions floats = t[0].options().dtype(at::kFloat);
    const at::Tensor weight = at::ones({channels}, floats), bias = at::zeros({channels}, floats);
    at::Tensor mean = at::zeros({channels}, floats), variance = at::ones({channels}, floats);
    const auto [out, saved, inverse] =
        at::native_batch_norm(t[0], weight, bias, mean, variance, training, 0.1, 1e-5);
    at::native_batch_norm_backward(t[0], t[0], weight, mean, variance, saved, inverse, training,
                                   1e-5, {true, true, true});
    at::_native_batch_norm_legit(t[0], weight, bias, mean, variance, training, 0.1, 1e-5);
    if (!training) return;
    at::_native_batch_norm_legit(t[0], weight, bias, training, 0.1, 1e-5);
    at::_native_batch_norm_legit(t[0], {}, {}, training, 0.1, 1e-5);
    at::batch_norm_update_stats(t[0], mean, variance, 0.1);
  };
}

void batchNormWithUpdate(const Tensors& t) {
  const at::TensorOptions floats = t[0].options().dtype(at::kFloat);
  const at::Tensor weight = at::ones({4}, floats), bias = at::zeros({4}, floats);
  at::Tensor mean = at::zeros({4}, floats), variance = at::ones({4}, floats);
  const auto [out, saved, inverse, reserve] =
      at::_batch_norm_with_update(t[0], weight, bias, mean, variance, 0.1, 1e-5);
  at::batch_norm_backward(out, t[0], weight, mean, variance, saved, inverse, true, 1e-5,
                          {true, true, true}, reserve);
}

}  // namespace

void checkBatchNormOverloads() {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    expectAgreementOn(layoutsOf({2, 4, 6, 6}, dtype), {batchNormCall(true), batchNormCall(false)});
    expectAgreementOn(layoutsOf({8, 4}, dtype), {batchNormCall(true)});
    expectAgreementOn(layoutsOf({2, 4, 6, 6}, dtype), {batchNormWithUpdate}, Where::kCpu);
    expectAgreementOn({at::rand({2, 4, 6, 6}).to(dtype)}, {batchNormWithUpdate});
  }
}

void checkSmallMatrices() {
  const Tensors rows = {at::rand({32, 64}), at::rand({64, 32}).t(),
                        at::rand({32, 128}).slice(1, 0, 128, 2)};
  expectAgreementOn(
      rows,
      {[](const Tensors& t) {
         const at::Tensor batch = at::rand({3, 64, 48}, t[0].options());
         at::addbmm(at::rand({48}, t[0].options()), t[0].unsqueeze(0).expand({3, 32, 64}), batch);
         at::Tensor sum = at::zeros({32, 48}, t[0].options());
         sum.addbmm_(t[0].unsqueeze(0).expand({3, 32, 64}), batch);
       },
       [](const Tensors& t) {
         const at::Tensor a = t[0].contiguous().to(at::kChar);
         at::_int_mm(a, at::zeros({64, 48}, a.options()));
         at::_int_mm(a, at::zeros({48, 64}, a.options()).t());
       },
       [](const Tensors& t) {
         const at::Tensor a = t[0].contiguous().to(at::kFloat8_e4m3fn);
         const at::Tensor b = at::zeros({48, 64}, t[0].options()).to(at::kFloat8_e4m3fn).t();
         const at::Tensor one = at::ones({}, t[0].options());
         at::_scaled_mm(a, b, one, one, {}, {}, at::kBFloat16);
         at::_scaled_mm(a, b, one, one);
       },
       [](const Tensors& t) {
         const at::Tensor a = t[0].contiguous().to(at::kBFloat16);
         at::_weight_int8pack_mm(a, at::zeros({16, 64}, a.options().dtype(at::kChar)),
                                 at::ones({16}, a.options()));
       }});
  expectAgreementOn(
      {at::rand({2, 5, 32}), at::rand({5, 2, 32}).transpose(0, 1)}, {[](const Tensors& t) {
        const at::TensorOptions options = t[0].options();
        for (const bool average : {true, false}) {
          at::_native_multi_head_attention(t[0], t[0], t[0], 32, 4, at::rand({96, 32}, options),
                                           at::zeros({96}, options), at::rand({32, 32}, options),
                                           at::zeros({32}, options), {}, true, average);
        }
      }},
      Where::kCpu);
}

void checkPlainConvolutions() {
  const std::vector<int64_t> second = {3, 3};
  const Tensors images = layoutsOf({2, 6, 9, 9});
  expectAgreementOn(images, {[=](const Tensors& t) {
                      const at::Tensor weight = at::rand({4, 6, 3, 3}, t[0].options());
                      at::_slow_conv2d_forward(t[0], weight, second, {}, {2, 1}, {1, 1});
                      at::slow_conv_dilated2d(t[0], weight, second, {}, {1, 1}, {1, 1}, {2, 2});
                    }});
  expectAgreementOn({images[0], images[2]}, {[=](const Tensors& t) {
                      const at::Tensor weight = at::rand({4, 6, 3, 3}, t[0].options());
                      at::_slow_conv2d_backward(at::ones({2, 4, 9, 9}, t[0].options()), t[0],
                                                weight, second, {1, 1}, {1, 1}, {true, true, true});
                    }});
  const Tensors volumes = layoutsOf({2, 4, 5, 6, 7});
  expectAgreementOn(
      {volumes[0], volumes[1], volumes[2]}, {[](const Tensors& t) {
        const at::Tensor weight = at::rand({3, 4, 3, 3, 3}, t[0].options());
        at::slow_conv3d_forward(t[0], weight, {3, 3, 3}, {}, {1, 1, 1}, {1, 1, 1});
        at::slow_conv_dilated3d(t[0], weight, {3, 3, 3}, {}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1});
      }},
      Where::kCpu);
}

void checkUpdates() {
  expectAgreementOn(
      {at::rand({4, 5})}, {[](const Tensors& t) {
        const auto list = [&] { return Tensors{at::rand({4, 5}, t[0].options())}; };
        const Tensors steps = {at::ones({}, t[0].options())};
        at::Tensor rate = at::full({}, 0.1, t[0].options());
        Tensors p = list(), g = list(), m = list(), v = list();
        const Tensors none;
        at::_fused_adam_(p, g, m, v, none, steps, 0.1, 0.9, 0.99, 0.0, 1e-8, false, false);
        at::_fused_adam_(p, g, m, v, none, steps, rate, 0.9, 0.99, 0.0, 1e-8, false, false);
        at::_fused_adamw_(p, g, m, v, none, steps, 0.1, 0.9, 0.99, 0.0, 1e-8, false, false);
        at::_fused_adamw_(p, g, m, v, none, steps, rate, 0.9, 0.99, 0.0, 1e-8, false, false);
        at::_fused_sgd_(p, g, m, 0.0, 0.9, 0.1, 0.0, false, false, false);
        at::_fused_sgd_(p, g, m, 0.0, 0.9, rate, 0.0, false, false, false);
        at::_fused_adagrad_(p, g, v, steps, 0.1, 0.0, 0.0, 1e-8, false);
        at::_fused_adagrad_(p, g, v, steps, rate, 0.0, 0.0, 1e-8, false);
        at::Tensor found = at::zeros({1}, t[0].options());
        at::_amp_foreach_non_finite_check_and_unscale_(g, found, at::ones({1}, t[0].options()));
      }});
}

TEST(CaptureRules, Choices) { checkChoices(); }
TEST(CaptureRules, Scans) { checkScans(); }
TEST(CaptureRules, RandomOps) { checkRandomOps(); }
TEST(CaptureRules, EmbeddingBags) { checkEmbeddingBags(); }
TEST(CaptureRules, MoreLosses) { checkMoreLosses(); }
TEST(CaptureRules, BatchNormOverloads) { checkBatchNormOverloads(); }
TEST(CaptureRules, SmallMatrices) { checkSmallMatrices(); }
TEST(CaptureRules, PlainConvolutions) { checkPlainConvolutions(); }
TEST(CaptureRules, Updates) { checkUpdates(); }

}  // namespace stowage::tests
