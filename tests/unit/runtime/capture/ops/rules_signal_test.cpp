// SPDX-License-Identifier: Apache-2.0
//
// Ops of signals, complex numbers and linear algebra, against the real ops on the CPU, over several
// layouts. On CUDA their rules refuse.

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "tests/support/op_agreement.h"
#include "tests/unit/runtime/capture/ops/rule_checks.h"

namespace stowage::tests {
namespace {

constexpr at::ScalarType kReal[] = {at::kFloat, at::kDouble};

/// Those of layoutsOf, a transposition of two dimensions, and one of size 1 in between.
Tensors signalLayouts(at::ScalarType dtype) {
  Tensors made = layoutsOf({4, 6, 8}, dtype);
  made.push_back(at::rand({6, 4, 8}).to(dtype).transpose(0, 1));
  made.push_back(at::rand({4, 8, 6}).to(dtype).transpose(1, 2));
  made.push_back(at::rand({4, 1, 7}).to(dtype));
  for (at::Tensor& four : layoutsOf({2, 3, 4, 5}, dtype)) made.push_back(std::move(four));
  return made;
}

/// Square, one by one and by the batch.
Tensors squareMatrices(at::ScalarType dtype) {
  Tensors made;
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{5, 5}, std::vector<int64_t>{3, 5, 5},
        std::vector<int64_t>{2, 3, 1, 1}}) {
    for (at::Tensor& matrix : layoutsOf(sizes, dtype)) made.push_back(std::move(matrix));
  }
  return made;
}

}  // namespace

void checkTransforms() {
  const std::vector<std::vector<int64_t>> dims = {{0}, {1}, {2}, {0, 2}, {2, 0}, {1, 2}, {0, 1, 2}};
  std::vector<Call> real, complex;
  for (const std::vector<int64_t>& over : dims) {
    for (const bool onesided : {true, false}) {
      real.push_back([=](const Tensors& t) { at::_fft_r2c(t[0], over, 0, onesided); });
    }
    complex.push_back([=](const Tensors& t) { at::_fft_c2c(t[0], over, 1, true); });
    complex.push_back([=](const Tensors& t) { at::_fft_c2c(t[0], over, 2, false); });
    // Half a spectrum is that of an even or of an odd number of samples.
    for (const int64_t samples : {-2, -1}) {
      complex.push_back([=](const Tensors& t) {
        const int64_t half = t[0].size(over.back());
        at::_fft_c2r(t[0], over, 2, std::max<int64_t>(2 * half + samples, 1));
      });
    }
  }
  complex.push_back([](const Tensors& t) { at::_fft_c2c(t[0], at::IntArrayRef(), 0, true); });
  for (const at::ScalarType dtype : kReal) {
    expectAgreementOn(signalLayouts(dtype), real, Where::kCpu);
    expectAgreementOn(signalLayouts(c10::toComplexType(dtype)), complex, Where::kCpu);
  }
  // What is made of them.
  expectAgreementOn({at::rand({3, 40}), at::rand({40, 3}).t()},
                    {[](const Tensors& t) { at::fft_irfft(at::fft_rfft(t[0])); },
                     [](const Tensors& t) { at::fft_fft2(t[0]); },
                     [](const Tensors& t) { at::fft_rfft(t[0], 32, 0, "ortho"); },
                     [](const Tensors& t) {
                       at::stft(t[0], 8, 2, 8, at::hann_window(8, t[0].options()), false, true,
                                true);
                     }},
                    Where::kCpu);
}

void checkComplexNumbers() {
  const std::vector<Call> calls = {
      [](const Tensors& t) { at::polar(t[0], t[0]); },
      [](const Tensors& t) { at::polar(t[0], t[0].select(0, 0)); },
      [](const Tensors& t) { at::polar(t[0].select(0, 0), t[0]); },
      [](const Tensors& t) { at::complex(t[0], t[0].contiguous()); },
      [](const Tensors& t) { at::complex(t[0].contiguous(), t[0]); },
      [](const Tensors& t) { at::angle(t[0]); },
      [](const Tensors& t) { at::logit(t[0]); },
      [](const Tensors& t) { at::logit(t[0], 0.1); },
      [](const Tensors& t) { at::_assert_async(t[0].gt(-1).all(), "positive"); },
  };
  const std::vector<Call> complex = {
      [](const Tensors& t) { at::angle(t[0]); },
      [](const Tensors& t) { at::_conj_physical(t[0]); },
      [](const Tensors& t) {
        at::Tensor copy = t[0].clone();
        at::conj_physical_(copy);
      },
      [](const Tensors& t) { at::view_as_real(t[0]).mul(2); },
      [](const Tensors& t) { at::mul(t[0], t[0]); },
      [](const Tensors& t) { at::abs(t[0]); },
      [](const Tensors& t) { at::sgn(t[0]); },
  };
  const std::vector<Call> whole = {[](const Tensors& t) { at::angle(t[0]); },
                                   [](const Tensors& t) { at::logit(t[0]); },
                                   [](const Tensors& t) { at::abs(t[0]); }};
  expectAgreementOn({at::arange(12).view({3, 4})}, whole, Where::kCpu);
  // One row of a wider tensor: its first stride says nothing.
  const at::Tensor row = at::rand({1, 8}).slice(1, 0, 6);
  expectAgreementOn({row, at::rand({8, 1}).t().slice(1, 0, 6)}, calls, Where::kCpu);
  expectAgreementOn(
      {row.to(at::kComplexFloat), at::complex(at::rand({1, 8}), at::rand({1, 8})).slice(1, 0, 6)},
      complex, Where::kCpu);
  std::vector<Call> turns;
  for (const int64_t count : {-1, 0, 1, 2, 3}) {
    turns.push_back([=](const Tensors& t) { at::rot90(t[0], count, {0, 1}); });
    turns.push_back([=](const Tensors& t) { at::rot90(t[0], count, {2, 0}); });
    turns.push_back([=](const Tensors& t) { at::rot90(t[0], count, {-1, -2}); });
  }
  for (const at::ScalarType dtype : kReal) {
    expectAgreementOn(layoutsOf({3, 4, 5}, dtype), calls, Where::kCpu);
    expectAgreementOn(layoutsOf({3, 4, 5}, c10::toComplexType(dtype)), complex, Where::kCpu);
    expectAgreementOn(layoutsOf({3, 4, 5}, dtype), turns, Where::kCpu);
  }
  expectAgreementOn(layoutsOf({2, 3, 4, 5}), turns, Where::kCpu);
  expectAgreementOn({at::rand({3, 4, 2}), at::rand({4, 3, 2}).transpose(0, 1)},
                    {[](const Tensors& t) { at::view_as_complex(t[0]).mul(2); }}, Where::kCpu);
}

/// One row of a wider tensor, whose first stride says nothing: elementwise kernels bring it in
/// line, what copies a layout keeps it.
void checkSingleRows() {
  expectAgreementOn({at::rand({1, 8}).slice(1, 0, 6), at::rand({6, 3}).t().slice(0, 0, 1),
                     at::rand({2, 1, 8}).slice(2, 0, 6)},
                    {[](const Tensors& t) { at::abs(t[0]); },
                     [](const Tensors& t) { at::relu(t[0]); },
                     [](const Tensors& t) { at::isnan(t[0]); },
                     [](const Tensors& t) { at::isinf(t[0]); },
                     [](const Tensors& t) { at::nan_to_num(t[0]); },
                     [](const Tensors& t) { at::logical_not(t[0]); },
                     [](const Tensors& t) { at::hardswish(t[0]); },
                     [](const Tensors& t) { at::hardtanh(t[0]); },
                     [](const Tensors& t) { at::flip(t[0], {0}); },
                     [](const Tensors& t) { at::roll(t[0], {1}); },
                     [](const Tensors& t) { at::remainder(2.0, t[0]); },
                     [](const Tensors& t) { at::floor_divide(t[0], t[0]); },
                     [](const Tensors& t) { at::where(t[0].gt(0.5), t[0], t[0]); },
                     [](const Tensors& t) { at::hardtanh_backward(t[0], t[0], -1, 1); },
                     [](const Tensors& t) { at::log_sigmoid_forward(t[0]); },
                     [](const Tensors& t) { at::mse_loss_backward(t[0], t[0], t[0], 0); },
                     [](const Tensors& t) {
                       at::binary_cross_entropy_backward(t[0], t[0], t[0], {}, 0);
                       at::binary_cross_entropy(t[0], t[0], {}, 0);
                     },
                     [](const Tensors& t) { at::huber_loss(t[0], t[0], 0); },
                     [](const Tensors& t) { at::native_dropout(t[0], 0.3, true); },
                     [](const Tensors& t) { at::native_dropout_backward(t[0], t[0].gt(0), 1.0); },
                     [](const Tensors& t) { at::poisson(t[0]); },
                     [](const Tensors& t) { at::clone(t[0]); }},
                    Where::kCpu);
}

void checkLinearAlgebra() {
  std::vector<Call> calls;
  for (const bool upper : {false, true}) {
    for (const bool left : {false, true}) {
      calls.push_back(
          [=](const Tensors& t) { at::linalg_solve_triangular(t[0], t[0], upper, left); });
      calls.push_back([=](const Tensors& t) {
        at::linalg_solve_triangular(t[0].mT(), t[0], upper, left, /*unitriangular=*/true);
      });
      // Batches of one against the other.
      calls.push_back([=](const Tensors& t) {
        const at::Tensor one = t[0].flatten(0, -3 + (t[0].dim() == 2 ? 1 : 0)).select(0, 0);
        if (t[0].dim() > 2) at::linalg_solve_triangular(one, t[0], upper, left);
        if (t[0].dim() > 2) at::linalg_solve_triangular(t[0], one, upper, left);
        at::linalg_solve_triangular(t[0], left ? t[0].narrow(-1, 0, 1) : t[0].narrow(-2, 0, 1),
                                    upper, left);
      });
    }
  }
  calls.push_back([](const Tensors& t) { at::linalg_matrix_exp(t[0]); });
  calls.push_back([](const Tensors& t) { at::linalg_matrix_exp(t[0].mT()); });
  calls.push_back([](const Tensors& t) { at::linalg_cholesky_ex(t[0]); });
  calls.push_back([](const Tensors& t) { at::linalg_cholesky_ex(t[0], /*upper=*/true); });
  calls.push_back([](const Tensors& t) {
    at::linalg_qr(t[0]);
    at::linalg_qr(t[0].narrow(-1, 0, 1), "reduced");
    at::linalg_qr(t[0].narrow(-1, 0, 1), "complete");
  });
  calls.push_back([](const Tensors& t) {
    at::linalg_householder_product(t[0], at::rand({5}, t[0].options())
                                             .narrow(0, 0, t[0].size(-1))
                                             .expand(t[0].sizes().slice(0, t[0].dim() - 1)));
  });
  calls.push_back([](const Tensors& t) { at::linalg_inv_ex(t[0]); });
  calls.push_back([](const Tensors& t) { at::linalg_eigh(t[0]); });
  calls.push_back([](const Tensors& t) { at::_linalg_svd(t[0]); });
  calls.push_back([](const Tensors& t) { at::_linalg_slogdet(t[0]); });
  for (const at::ScalarType dtype : kReal) {
    expectAgreementOn(squareMatrices(dtype), calls, Where::kCpu);
  }
}

void checkDistances() {
  for (const at::ScalarType dtype : kReal) {
    expectAgreementOn(
        layoutsOf({5, 4}, dtype),
        {[](const Tensors& t) {
           for (const double p : {0.0, 1.0, 2.0, 3.0}) {
             const at::Tensor out = at::_pdist_forward(t[0].contiguous(), p);
             at::_pdist_backward(out, t[0].contiguous(), p, out);
           }
         },
         [](const Tensors& t) { at::pdist(t[0]); },
         [](const Tensors& t) { at::_pdist_forward(t[0].narrow(0, 0, 1).contiguous()); },
         [](const Tensors& t) {
           const at::Tensor out = at::_cdist_forward(t[0], t[0], 1.0, std::nullopt);
           at::_cdist_backward(out, t[0], t[0], 1.0, out);
         }},
        Where::kCpu);
    expectAgreementOn(layoutsOf({3, 5, 4}, dtype), {[](const Tensors& t) {
                        const at::Tensor other = at::rand({3, 2, 4}, t[0].options());
                        const at::Tensor out = at::_cdist_forward(t[0], other, 2.0, 2);
                        at::_cdist_backward(out, t[0].contiguous(), other, 2.0, out);
                        at::_cdist_forward(t[0], other.narrow(0, 0, 1), 3.0, std::nullopt);
                      }},
                      Where::kCpu);
  }
}

void checkWeightNorms() {
  std::vector<Call> calls;
  for (const int64_t dim : {0, 2}) {
    calls.push_back([=](const Tensors& t) {
      std::vector<int64_t> sizes(3, 1);
      sizes[static_cast<size_t>(dim)] = t[0].size(dim);
      const at::Tensor g = at::rand(sizes, t[0].options());
      const at::Tensor v = t[0].contiguous();  // as libtorch's caller makes it
      const auto [weight, norms] = at::_weight_norm_interface(v, g, dim);
      at::_weight_norm_interface_backward(v, v, g, norms, dim);
    });
  }
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    expectAgreementOn(layoutsOf({4, 3, 5}, dtype), calls);
  }
}

// No GPU was asked how it lays out their results.
TEST(CaptureRules, OfTheCpuAloneRefuseCuda) {
  const OpCase transform{"",
                         [] {
                           return Tensors{at::rand({4, 6})};
                         },
                         [](const Tensors& t) { at::fft_rfft(t[0]); }};
  const std::string text = resultsOnCuda("aten._fft_r2c.default", transform);
  EXPECT_NE(text.find("aten._fft_r2c.default"), std::string::npos) << text;
  EXPECT_NE(text.find("never compared with a GPU"), std::string::npos) << text;
}

TEST(CaptureRules, Transforms) { checkTransforms(); }
TEST(CaptureRules, ComplexNumbers) { checkComplexNumbers(); }
TEST(CaptureRules, SingleRows) { checkSingleRows(); }
TEST(CaptureRules, LinearAlgebra) { checkLinearAlgebra(); }
TEST(CaptureRules, Distances) { checkDistances(); }
TEST(CaptureRules, WeightNorms) { checkWeightNorms(); }

}  // namespace stowage::tests
