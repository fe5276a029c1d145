// SPDX-License-Identifier: Apache-2.0
//
// Ops on layouts of few elements, against the real ops on the CPU.

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "tests/support/op_agreement.h"
#include "tests/unit/runtime/capture_rule_checks.h"

namespace stowage::tests {

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

TEST(CaptureRules, SingleRows) { checkSingleRows(); }

}  // namespace stowage::tests
