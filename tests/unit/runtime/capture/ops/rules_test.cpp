// SPDX-License-Identifier: Apache-2.0
//
// One op at a time, over a table of shapes, layouts and types: what the tracer says an op returns
// against what the real op returns on the CPU.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "tests/support/op_agreement.h"
#include "tests/unit/runtime/capture/ops/rule_checks.h"

namespace stowage::tests {

namespace {

at::Tensor image(at::ScalarType dtype = at::kFloat, bool channelsLast = false) {
  const at::Tensor made = torch::randn({2, 6, 9, 7}).to(dtype);
  return channelsLast ? made.contiguous(at::MemoryFormat::ChannelsLast) : made;
}

}  // namespace

void checkConvolutions() {
  static const std::vector<int64_t> kFour = {4};
  std::vector<OpCase> cases;
  for (const bool inputLast : {false, true}) {
    for (const bool weightLast : {false, true}) {
      for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
        const auto inputs = [=]() -> Tensors {
          at::Tensor weight = torch::randn({4, 6, 3, 3}).to(dtype);
          if (weightLast) weight = weight.contiguous(at::MemoryFormat::ChannelsLast);
          return {image(dtype, inputLast), weight, torch::randn({4}).to(dtype)};
        };
        cases.push_back({"conv2d", inputs, [](const Tensors& t) {
                           const at::Tensor out = at::convolution(t[0], t[1], t[2], {2, 1}, {1, 0},
                                                                  {1, 1}, false, {0, 0}, 1);
                           at::convolution_backward(at::ones_like(out), t[0], t[1],
                                                    at::IntArrayRef(kFour), {2, 1}, {1, 0}, {1, 1},
                                                    false, {0, 0}, 1, {true, true, true});
                         }});
      }
    }
  }
  const auto plain = [](const std::vector<int64_t>& input, const std::vector<int64_t>& weight) {
    return [=]() -> Tensors { return {torch::randn(input), torch::randn(weight)}; };
  };
  cases.push_back({"conv1d", plain({2, 4, 11}, {6, 4, 3}), [](const Tensors& t) {
                     const at::Tensor out =
                         at::convolution(t[0], t[1], {}, {1}, {1}, {1}, false, {0}, 1);
                     at::convolution_backward(at::ones_like(out), t[0], t[1], std::nullopt, {1},
                                              {1}, {1}, false, {0}, 1, {true, true, false});
                   }});
  const auto reversed = []() -> Tensors {
    return {torch::randn({2, 11, 4}).transpose(1, 2), torch::randn({4, 1, 3})};
  };
  cases.push_back({"conv1d of a transposed signal", reversed, [](const Tensors& t) {
                     const at::Tensor out =
                         at::convolution(t[0], t[1], {}, {1}, {2}, {1}, false, {0}, 4);
                     at::convolution_backward(at::ones_like(out), t[0], t[1], std::nullopt, {1},
                                              {2}, {1}, false, {0}, 4, {true, true, false});
                   }});
  cases.push_back(
      {"conv3d", plain({2, 4, 5, 6, 7}, {6, 4, 3, 3, 3}), [](const Tensors& t) {
         at::convolution(t[0], t[1], {}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false, {0, 0, 0}, 1);
       }});
  cases.push_back({"grouped", plain({2, 6, 9, 9}, {6, 1, 3, 3}), [](const Tensors& t) {
                     at::convolution(t[0], t[1], {}, {1, 1}, {1, 1}, {2, 2}, false, {0, 0}, 6);
                   }});
  cases.push_back({"transposed", plain({2, 6, 5, 5}, {6, 4, 3, 3}), [](const Tensors& t) {
                     const at::Tensor out =
                         at::convolution(t[0], t[1], {}, {2, 2}, {1, 1}, {1, 1}, true, {1, 1}, 1);
                     at::convolution_backward(at::ones_like(out), t[0], t[1], std::nullopt, {2, 2},
                                              {1, 1}, {1, 1}, true, {1, 1}, 1, {true, true, false});
                   }});
  expectAgreement(cases);
}

/// Which kernel libtorch takes on the CPU depends on oneDNN and on the number of threads.
void checkKernelsOfConvolutions() {
  struct Shape {
    const char* name;
    std::vector<int64_t> weight;
    int64_t stride = 1, groups = 1;
    bool transposed = false;
  };
  const std::vector<Shape> shapes = {{"1x1", {4, 6, 1, 1}},
                                     {"1x1 by 2", {4, 6, 1, 1}, 2},
                                     {"3x3", {4, 6, 3, 3}},
                                     {"one channel", {1, 6, 1, 1}},
                                     {"each", {6, 1, 3, 3}, 1, 6},
                                     {"pairs", {6, 2, 1, 1}, 1, 3},
                                     {"back 1x1", {6, 4, 1, 1}, 1, 1, true},
                                     {"back 3x3", {6, 4, 3, 3}, 1, 1, true}};
  std::vector<OpCase> cases;
  for (const Shape& shape : shapes) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      for (const int layouts : {0, 1, 2, 3}) {
        const auto inputs = [=]() -> Tensors {
          at::Tensor weight = torch::randn(shape.weight).to(dtype);
          if (layouts >= 2) {
            weight = weight.permute({0, 2, 3, 1}).clone(at::MemoryFormat::Contiguous);
            weight = weight.permute({0, 3, 1, 2});
          }
          return {image(dtype, layouts % 2 == 1), weight};
        };
        cases.push_back({shape.name, inputs, [=](const Tensors& t) {
                           const at::Tensor out =
                               at::convolution(t[0], t[1], {}, {shape.stride, shape.stride}, {0, 0},
                                               {1, 1}, shape.transposed, {0, 0}, shape.groups);
                           at::convolution_backward(at::ones_like(out), t[0], t[1], std::nullopt,
                                                    {shape.stride, shape.stride}, {0, 0}, {1, 1},
                                                    shape.transposed, {0, 0}, shape.groups,
                                                    {true, true, false});
                         }});
      }
    }
  }
  const int threads = at::get_num_threads();
  for (const bool oneDnn : {true, false}) {
    for (const int count : {1, 2}) {
      SCOPED_TRACE((oneDnn ? "oneDNN, " : "no oneDNN, ") + std::to_string(count) + " threads");
      at::globalContext().setUserEnabledMkldnn(oneDnn);
      at::set_num_threads(count);
      expectAgreement(cases);
    }
  }
  at::globalContext().setUserEnabledMkldnn(true);
  at::set_num_threads(threads);
}

void checkNormalisations() {
  std::vector<OpCase> cases;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const at::ScalarType weightType : {at::kFloat, dtype}) {
      const auto rows = [=]() -> Tensors {
        return {torch::randn({3, 5, 16}).to(dtype), torch::randn({16}).to(weightType),
                torch::randn({16}).to(weightType)};
      };
      cases.push_back({"layer_norm", rows, [](const Tensors& t) {
                         const auto [out, mean, rstd] =
                             at::native_layer_norm(t[0], {16}, t[1], t[2], 1e-5);
                         at::native_layer_norm_backward(out, t[0], {16}, mean, rstd, t[1], t[2],
                                                        {true, true, true});
                       }});
      cases.push_back(
          {"rms_norm", rows, [](const Tensors& t) { at::rms_norm(t[0], {16}, t[1], 1e-5); }});
    }
  }
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const bool channelsLast : {false, true}) {
      const auto inputs = [=]() -> Tensors {
        return {image(dtype, channelsLast), torch::randn({6}), torch::randn({6}), torch::zeros({6}),
                torch::ones({6})};
      };
      for (const bool training : {true, false}) {
        cases.push_back({"batch_norm", inputs, [=](const Tensors& t) {
                           const auto [out, mean, rstd] = at::native_batch_norm(
                               t[0], t[1], t[2], t[3], t[4], training, 0.1, 1e-5);
                           at::native_batch_norm_backward(out, t[0], t[1], t[3], t[4], mean, rstd,
                                                          training, 1e-5, {true, true, true});
                         }});
      }
      cases.push_back({"group_norm", inputs, [](const Tensors& t) {
                         const at::Tensor x = t[0].to(at::kFloat);
                         const auto [out, mean, rstd] =
                             at::native_group_norm(x.contiguous(), t[1], t[2], 2, 6, 63, 3, 1e-5);
                         at::native_group_norm_backward(out, x.contiguous(), mean, rstd, t[1], 2, 6,
                                                        63, 3, {true, true, true});
                       }});
    }
  }
  cases.push_back(
      {"batch_norm 1d",
       []() -> Tensors {
         return {torch::randn({8, 6})};
       },
       [](const Tensors& t) { at::native_batch_norm(t[0], {}, {}, {}, {}, true, 0.1, 1e-5); }});
  cases.push_back(
      {"batch_norm of one column",
       []() -> Tensors {
         return {torch::randn({2, 1, 8, 6}).transpose(1, 3)};  // channels last, and not suggested
       },
       [](const Tensors& t) { at::native_batch_norm(t[0], {}, {}, {}, {}, true, 0.1, 1e-5); }});
  expectAgreement(cases);
}

void checkAttention() {
  std::vector<OpCase> cases;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const bool transposed : {true, false}) {
      const auto inputs = [=]() -> Tensors {
        Tensors made;
        for (int i = 0; i < 3; ++i) {
          const at::Tensor x = transposed ? torch::randn({2, 12, 4, 8}).transpose(1, 2)
                                          : torch::randn({2, 4, 12, 8});
          made.push_back(x.to(dtype));
        }
        made.push_back(torch::randn({12, 12}).to(dtype));
        return made;
      };
      cases.push_back({"flash", inputs, [](const Tensors& t) {
                         const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
                             t[0], t[1], t[2], 0.0, true);
                         at::_scaled_dot_product_flash_attention_for_cpu_backward(
                             out, t[0], t[1], t[2], out, lse, 0.0, true);
                       }});
      cases.push_back({"composite", inputs, [](const Tensors& t) {
                         at::scaled_dot_product_attention(t[0], t[1], t[2], t[3]);
                         at::scaled_dot_product_attention(t[0], t[1], t[2], {}, 0.1, true);
                       }});
    }
  }
  cases.push_back({"grouped queries",
                   []() -> Tensors {
                     return {torch::randn({2, 4, 12, 8}), torch::randn({2, 2, 12, 8})};
                   },
                   [](const Tensors& t) {
                     at::scaled_dot_product_attention(t[0], t[1], t[1], {}, 0.0, true, {}, true);
                   }});
  expectAgreement(cases);
}

void checkLosses() {
  const auto inputs = []() -> Tensors {
    return {torch::randn({5, 7}),
            torch::randint(0, 7, {5}),
            torch::rand({5, 7}).clamp(0.1, 0.9),
            torch::randn({2, 7, 3, 3}),
            torch::randint(0, 7, {2, 3, 3}),
            torch::rand({7})};
  };
  for (const int64_t reduction : {0, 1, 2}) {
    expectAgreement(
        inputs,
        {[=](const Tensors& t) {
           const auto [loss, weight] = at::nll_loss_forward(t[0], t[1], t[5], reduction, -100);
           at::nll_loss_backward(loss, t[0], t[1], t[5], reduction, -100, weight);
         },
         [=](const Tensors& t) {
           const auto [loss, weight] = at::nll_loss2d_forward(t[3], t[4], {}, reduction, -100);
           at::nll_loss2d_backward(loss, t[3], t[4], {}, reduction, -100, weight);
         },
         [=](const Tensors& t) {
           at::mse_loss_backward(at::mse_loss(t[0], t[2], reduction), t[0], t[2], reduction);
         },
         [=](const Tensors& t) {
           const at::Tensor loss = at::smooth_l1_loss(t[0], t[2], reduction, 1.0);
           at::smooth_l1_loss_backward(loss, t[0], t[2], reduction, 1.0);
         },
         [=](const Tensors& t) {
           const at::Tensor loss = at::huber_loss(t[0], t[2], reduction, 1.0);
           at::huber_loss_backward(loss, t[0], t[2], reduction, 1.0);
         },
         [=](const Tensors& t) {
           const at::Tensor loss = at::binary_cross_entropy(t[2], t[2], {}, reduction);
           at::binary_cross_entropy_backward(loss, t[2], t[2], {}, reduction);
         },
         [=](const Tensors& t) {
           at::binary_cross_entropy_with_logits(t[0], t[2], {}, {}, reduction);
         },
         [=](const Tensors& t) { at::kl_div(t[0], t[2], reduction); },
         [=](const Tensors& t) { at::cross_entropy_loss(t[0], t[1], {}, reduction, -100, 0.1); },
         [=](const Tensors& t) {
           const at::Tensor loss = at::multi_margin_loss(t[0], t[1], 1, 1.0, {}, reduction);
           at::multi_margin_loss_backward(loss, t[0], t[1], 1, 1.0, {}, reduction);
         },
         [=](const Tensors& t) { at::l1_loss(t[0], t[2], reduction); }});
  }
}

/// A contiguous, a permuted and a strided tensor.
static Tensors layouts() {
  return {torch::randn({3, 4, 5}), torch::randn({5, 4, 3}).permute({2, 1, 0}),
          torch::randn({3, 4, 10}).slice(2, 0, 10, 2)};
}

void checkActivations() {
  using Unary = std::function<void(const at::Tensor&)>;
  const std::vector<Unary> calls = {
      [](const at::Tensor& x) { at::threshold_backward(x, at::relu(x), 0); },
      [](const at::Tensor& x) { at::hardtanh_backward(x, at::hardtanh(x), -1, 1); },
      [](const at::Tensor& x) { at::hardswish_backward(x, at::hardswish(x)); },
      [](const at::Tensor& x) { at::hardsigmoid_backward(x, at::hardsigmoid(x)); },
      [](const at::Tensor& x) { at::leaky_relu_backward(x, at::leaky_relu(x, 0.1), 0.1, false); },
      [](const at::Tensor& x) { at::silu_backward(x, at::silu(x)); },
      [](const at::Tensor& x) { at::gelu_backward(x, at::gelu(x)); },
      [](const at::Tensor& x) { at::elu(x); },
      [](const at::Tensor& x) { at::softplus_backward(x, at::softplus(x), 1, 20); },
      [](const at::Tensor& x) { at::mish_backward(x, at::mish(x)); },
      [](const at::Tensor& x) { at::glu_backward(at::glu(x, 1), x, 1); },
      [](const at::Tensor& x) {
        const auto [out, buffer] = at::log_sigmoid_forward(x);
        at::log_sigmoid_backward(out, x, buffer);
      },
      [](const at::Tensor& x) { at::_prelu_kernel(x, x.slice(0, 0, 1)); },
      [](const at::Tensor& x) { at::_prelu_kernel_backward(x, x, x.slice(0, 0, 1)); },
      [](const at::Tensor& x) {
        at::Tensor copy = x.clone();
        at::relu_(copy);
      },
      [](const at::Tensor& x) { at::tanh_backward(x, at::tanh(x)); },
      [](const at::Tensor& x) { at::sigmoid_backward(x, at::sigmoid(x)); },
  };
  for (size_t layout = 0; layout < 3; ++layout) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const OpCase op{"", [=] { return Tensors{layouts()[layout]}; },
                      [&](const Tensors& t) { calls[i](t[0]); }};
      EXPECT_EQ(disagreement(op), "") << "call " << i << ", layout " << layout;
    }
  }
}

void checkPointwise() {
  const auto inputs = []() -> Tensors {
    Tensors made = layouts();
    made.push_back(torch::randn({4, 1}));
    made.push_back(torch::randn({3, 4, 5}).gt(0));
    return made;
  };
  expectAgreement(inputs, {[](const Tensors& t) { at::where(t[4], t[0], t[1]); },
                           [](const Tensors& t) { at::where(t[4], t[1], 0.0); },
                           [](const Tensors& t) { at::isnan(t[1]); },
                           [](const Tensors& t) { at::abs(t[1]); },
                           [](const Tensors& t) { at::abs(t[0].to(at::kComplexFloat)); },
                           [](const Tensors& t) { at::isinf(t[2]); },
                           [](const Tensors& t) { at::isfinite(t[2]); },
                           [](const Tensors& t) { at::remainder(t[0], 2.0); },
                           [](const Tensors& t) { at::remainder(2.0, t[1]); },
                           [](const Tensors& t) { at::floor_divide(t[0], t[3]); },
                           [](const Tensors& t) { at::rsub(t[1], t[3]); },
                           [](const Tensors& t) { at::rsub(t[1], 1.0); },
                           [](const Tensors& t) { at::masked_fill(t[1], t[4], -1.0); },
                           [](const Tensors& t) { at::clamp(t[1], -1.0, 1.0); },
                           [](const Tensors& t) { at::clamp(t[1], t[0], t[2]); },
                           [](const Tensors& t) { at::maximum(t[0], t[1]); },
                           [](const Tensors& t) { at::pow(t[1], 2.0); },
                           [](const Tensors& t) { at::pow(2.0, t[2]); },
                           [](const Tensors& t) { at::lerp(t[0], t[1], 0.5); },
                           [](const Tensors& t) { at::addcmul(t[1], t[0], t[2]); },
                           [](const Tensors& t) { at::addcdiv(t[1], t[0], t[3]); },
                           [](const Tensors& t) { at::abs(t[2]); },
                           [](const Tensors& t) { at::sign(t[1]); },
                           [](const Tensors& t) { at::exp(t[2]); },
                           [](const Tensors& t) { at::rsqrt(t[1]); },
                           [](const Tensors& t) { at::logical_and(t[4], t[4]); },
                           [](const Tensors& t) { at::logical_or(t[1], t[4]); },
                           [](const Tensors& t) { at::logical_xor(t[1], t[3]); },
                           [](const Tensors& t) { at::logical_not(t[1]); },
                           [](const Tensors& t) { t[4].logical_and_(t[4]); },
                           [](const Tensors& t) { t[4].logical_or_(t[4]); },
                           [](const Tensors& t) { t[4].logical_xor_(t[4]); },
                           [](const Tensors& t) { t[4].logical_not_(); },
                           [](const Tensors& t) { t[1].addcmul_(t[0], t[3]); },
                           [](const Tensors& t) { t[1].addcdiv_(t[3], t[2], -1.0); },
                           [](const Tensors& t) { t[1].abs_(); },
                           [](const Tensors& t) { t[1].nan_to_num_(); },
                           [](const Tensors& t) { t[1].floor_divide_(2.0); },
                           [](const Tensors& t) { at::bitwise_not(t[4]); },
                           [](const Tensors& t) { at::eq(t[1], t[0]); },
                           [](const Tensors& t) { at::nan_to_num(t[1]); },
                           [](const Tensors& t) { at::round(t[2]); },
                           [](const Tensors& t) { at::erf(t[1]); },
                           [](const Tensors& t) { at::atan2(t[0], t[1]); },
                           [](const Tensors& t) { at::fmod(t[1], 2.0); },
                           [](const Tensors& t) { at::hypot(t[1], t[0]); }});
}

void checkReductions() {
  const std::vector<int64_t> second = {1}, outer = {0, 2};
  const std::optional<at::Scalar> one(1);
  for (size_t layout = 0; layout < 3; ++layout) {
    const auto inputs = [=]() -> Tensors { return {layouts()[layout], torch::randn({6})}; };
    expectAgreement(
        inputs,
        {[](const Tensors& t) { at::max(t[0]); },
         [](const Tensors& t) { at::min(t[0]); },
         [](const Tensors& t) { at::max(t[0], 1); },
         [](const Tensors& t) { at::amax(t[0], {1}); },
         [](const Tensors& t) { at::prod(t[0]); },
         [](const Tensors& t) { at::prod(t[0], 1); },
         [=](const Tensors& t) { at::var(t[0], second, one, true); },
         [=](const Tensors& t) { at::std(t[0], outer, one, false); },
         [=](const Tensors& t) { at::var_mean(t[0], second, one, false); },
         [=](const Tensors& t) { at::std_mean(t[0], second, one, true); },
         [](const Tensors& t) { at::sum(t[0], {0}); },
         [](const Tensors& t) { at::sum(t[0]); },
         [](const Tensors& t) {
           at::mean(t[0], {1, 2});
         },
         [](const Tensors& t) { at::norm(t[0]); },
         [=](const Tensors& t) { at::linalg_vector_norm(t[0], 2, at::IntArrayRef(second), true); },
         [](const Tensors& t) { at::logsumexp(t[0], {2}); },
         [](const Tensors& t) { at::argmax(t[0], 1); },
         [=](const Tensors& t) { at::count_nonzero(t[0], at::IntArrayRef(second)); },
         [](const Tensors& t) { at::nansum(t[0], {1}); },
         [](const Tensors& t) { at::median(t[0]); },
         [](const Tensors& t) { at::aminmax(t[0]); },
         [](const Tensors& t) { at::any(t[0].gt(0), 1); },
         [](const Tensors& t) { at::all(t[0].gt(0)); },
         [](const Tensors& t) { at::dot(t[1], t[1]); },
         [](const Tensors& t) { at::vdot(t[1], t[1]); },
         [](const Tensors& t) { at::trace(t[0].select(0, 0)); },
         [](const Tensors& t) {
           const at::Tensor out = at::_softmax(t[0], 1, false);
           at::_softmax_backward_data(out, out, 1, at::kFloat);
         },
         [](const Tensors& t) {
           const at::Tensor out = at::_log_softmax(t[0], 2, false);
           at::_log_softmax_backward_data(out, out, 2, at::kFloat);
           const at::Tensor turned = at::ones_like(out).transpose(0, 1).clone().transpose(0, 1);
           at::_log_softmax_backward_data(turned, out, 2, at::kFloat);
         },
         [](const Tensors& t) { at::_safe_softmax(t[0], 1); },
         [](const Tensors& t) { at::cumsum(t[0], 1); },
         [](const Tensors& t) { at::cumprod(t[0], 1); },
         [](const Tensors& t) { at::logcumsumexp(t[0], 1); },
         [](const Tensors& t) { at::topk(t[0], 2, 2); },
         [](const Tensors& t) { at::sort(t[0], 1); },
         [](const Tensors& t) { at::argsort(t[0], /*stable=*/true, 1); },
         [](const Tensors& t) { at::tril(t[0]); },
         [](const Tensors& t) { at::flip(t[0], {0}); },
         [](const Tensors& t) { at::roll(t[0], {1}, {2}); },
         [](const Tensors& t) { at::clone(t[0]); },
         [](const Tensors& t) {
           at::constant_pad_nd(t[0], {1, 1});
         },
         [](const Tensors& t) { at::repeat_interleave(t[0], 2, 1); },
         [](const Tensors& t) {
           t[0].repeat({2, 1, 3});
         },
         [](const Tensors& t) { at::_to_copy(t[0], at::TensorOptions(at::kBFloat16)); },
         [](const Tensors& t) {
           at::cat({t[0], t[0]}, 2);
         },
         [](const Tensors& t) {
           at::stack({t[0], t[0]}, 1);
         },
         [](const Tensors& t) { at::ones_like(t[0]); },
         [](const Tensors& t) { at::randn_like(t[0]); },
         [](const Tensors& t) { at::bernoulli(t[0].sigmoid()); },
         [](const Tensors& t) { at::native_dropout(t[0], 0.3, true); },
         [](const Tensors& t) { at::native_dropout(t[0], 0.3, false); },
         [](const Tensors& t) { at::native_dropout_backward(t[0], t[0].gt(0), 1.0); },
         [](const Tensors& t) { at::dropout(t[0], 0.3, true); }});
  }
}

void checkIndexing() {
  const auto inputs = []() -> Tensors {
    return {torch::randn({10, 4}),      torch::randint(0, 10, {3, 5}),
            torch::randn({3, 5, 4}),    torch::randint(0, 4, {3, 5, 4}),
            torch::randint(0, 10, {6}), torch::arange(6).mul(0)};
  };
  const std::vector<int64_t> sizes = {3, 9, 4};
  expectAgreement(
      inputs, {[](const Tensors& t) { at::embedding(t[0], t[1], -1); },
               [](const Tensors& t) { at::embedding_dense_backward(t[2], t[1], 10, -1, false); },
               [](const Tensors& t) { at::index_select(t[0], 0, t[4]); },
               [](const Tensors& t) { at::index(t[0], {t[4]}); },
               [](const Tensors& t) {
                 at::index(t[2], {std::nullopt, t[4].clamp(0, 4)});
               },
               [](const Tensors& t) { at::index_put(t[0], {t[4]}, t[0].slice(0, 0, 6), true); },
               [](const Tensors& t) {
                 at::Tensor copy = t[0].clone();
                 at::_index_put_impl_(copy, {t[4]}, t[0].slice(0, 0, 6));
               },
               [](const Tensors& t) { at::gather(t[2], 2, t[3]); },
               [](const Tensors& t) { at::scatter(t[2], 2, t[3], t[2]); },
               [](const Tensors& t) { at::scatter_add(t[2], 2, t[3], t[2]); },
               [](const Tensors& t) { at::index_add(t[0], 0, t[4], t[0].slice(0, 0, 6)); },
               [](const Tensors& t) { at::take(t[0], t[1]); },
               [](const Tensors& t) { at::bucketize(t[2], at::arange(10, at::kFloat)); },
               [](const Tensors& t) { at::searchsorted(at::arange(10, at::kFloat), t[2]); },
               [=](const Tensors& t) { at::slice_backward(t[2], sizes, 1, 0, 5, 1); },
               [=](const Tensors& t) { at::select_backward(t[2].select(1, 0), sizes, 1, 0); },
               [](const Tensors& t) {
                 at::unfold_backward(t[2].unfold(1, 3, 1).contiguous(), {3, 5, 4}, 1, 3, 1);
               },
               [](const Tensors& t) { at::index_fill(t[0], 0, t[4], 1.0); },
               [](const Tensors& t) { at::masked_scatter(t[2], t[3].gt(1), t[2]); },
               [](const Tensors&) { at::arange(5); },
               [](const Tensors&) { at::eye(4); },
               [](const Tensors&) { at::linspace(0, 1, 7); }});
}

void checkPooling() {
  for (const bool channelsLast : {false, true}) {
    const auto inputs = [=]() -> Tensors {
      const at::Tensor x = torch::randn({2, 4, 6, 6});
      return {channelsLast ? x.contiguous(at::MemoryFormat::ChannelsLast) : x,
              torch::zeros({2, 3, 3, 2})};
    };
    expectAgreement(inputs,
                    {[](const Tensors& t) {
                       const auto [out, where] = at::max_pool2d_with_indices(t[0], {2, 2});
                       at::max_pool2d_with_indices_backward(out, t[0], {2, 2}, {2, 2}, {0, 0},
                                                            {1, 1}, false, where);
                     },
                     [](const Tensors& t) {
                       at::max_pool2d(t[0], {3, 3}, {2, 2}, {1, 1});
                     },
                     [](const Tensors& t) {
                       const at::Tensor out = at::avg_pool2d(t[0], {2, 2});
                       at::avg_pool2d_backward(out, t[0], {2, 2}, {2, 2}, {0, 0}, false, true, {});
                     },
                     [](const Tensors& t) {
                       at::adaptive_avg_pool2d(t[0], {1, 1});
                     },
                     [](const Tensors& t) {
                       at::upsample_nearest2d(t[0], {12, 12});
                     },
                     [](const Tensors& t) {
                       at::upsample_bilinear2d(t[0], {12, 12}, false);
                     }});
  }
}

void checkMatrices() {
  const auto inputs = []() -> Tensors {
    return {torch::randn({4, 6}),    torch::randn({6, 5}), torch::randn({3, 4, 6}),
            torch::randn({3, 6, 5}), torch::randn({4, 5}), torch::randn({4})};
  };
  expectAgreement(inputs,
                  {[](const Tensors& t) { at::mm(t[0], t[1]); },
                   [](const Tensors& t) { at::mm(t[1].t(), t[0].t()); },
                   [](const Tensors& t) { at::bmm(t[2], t[3]); },
                   [](const Tensors& t) { at::bmm(t[3].transpose(1, 2), t[2].transpose(1, 2)); },
                   [](const Tensors& t) { at::addmm(t[4], t[0], t[1]); },
                   [](const Tensors& t) { at::baddbmm(t[4].unsqueeze(0), t[2], t[3]); },
                   [](const Tensors& t) { at::addmv(t[5], t[0], t[1].select(1, 0)); },
                   [](const Tensors& t) { at::mv(t[0], t[1].select(1, 0)); },
                   [](const Tensors& t) { at::linear(t[2], t[1].t()); },
                   [](const Tensors& t) {
                     at::einsum("bij,bjk->bik", {t[2], t[3]});
                   },
                   [](const Tensors& t) { at::matmul(t[2], t[1]); },
                   [](const Tensors& t) { at::outer(t[5], t[5]); }});
}

TEST(CaptureRules, Convolutions) { checkConvolutions(); }
TEST(CaptureRules, KernelsOfConvolutions) { checkKernelsOfConvolutions(); }
TEST(CaptureRules, Normalisations) { checkNormalisations(); }
TEST(CaptureRules, Attention) { checkAttention(); }
TEST(CaptureRules, Losses) { checkLosses(); }
TEST(CaptureRules, Activations) { checkActivations(); }
TEST(CaptureRules, Pointwise) { checkPointwise(); }
TEST(CaptureRules, Reductions) { checkReductions(); }
TEST(CaptureRules, Indexing) { checkIndexing(); }
TEST(CaptureRules, Pooling) { checkPooling(); }
TEST(CaptureRules, Matrices) { checkMatrices(); }

}  // namespace stowage::tests
