// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/dispatch/masked_scatter.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <torch/library.h>

namespace stowage::runtime {
namespace {

/// masked_scatter_backward(grad_output, mask, sizes)
at::Tensor maskedScatterBackward(const at::Tensor& grad, const at::Tensor& mask,
                                 c10::SymIntArrayRef sizes) {
  const c10::IntArrayRef shape = C10_AS_INTARRAYREF_SLOW(sizes);
  const int64_t count = c10::multiply_integers(shape);
  const at::Tensor chosen = mask.expand(grad.sizes()).reshape({-1});
  // What is not chosen goes to an element behind the last.
  const at::Tensor place =
      at::where(chosen, at::cumsum(chosen, 0, c10::kLong).sub(1), at::Scalar(count));
  return at::zeros({count + 1}, grad.options())
      .scatter(0, place, grad.reshape({-1}))
      .narrow(0, 0, count)
      .view(shape);
}

}  // namespace

void registerMaskedScatter() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::Fake, __FILE__,
                                __LINE__);
  static const bool kRegistered = [] {
    library.impl("masked_scatter_backward", &maskedScatterBackward);
    return true;
  }();
  static_cast<void>(kRegistered);
}

}  // namespace stowage::runtime
