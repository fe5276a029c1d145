// SPDX-License-Identifier: Apache-2.0
#include "tools/models/nf4.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace stowage::tools {

at::Tensor nf4Shares() {
  // Eight quantiles above 0, seven below, and 0 itself. The outermost probability is the mean of
  // those that 30 and 32 equal parts leave.
  constexpr double kOutermost = 1 - (1.0 / 30 + 1.0 / 32) / 2;
  const auto quantiles = [](int64_t count) {
    return at::special_ndtri(at::linspace(0.5, kOutermost, count + 1, at::kDouble));
  };
  const at::Tensor above = quantiles(8);  // begins with 0
  const at::Tensor below = -quantiles(7).flip(0).slice(0, 0, 7);
  return (at::cat({below, above}) / above.select(0, 8)).to(at::kFloat);
}

at::Tensor nf4Pairs() {
  const at::Tensor shares = nf4Shares();
  const at::Tensor upper = shares.unsqueeze(1).expand({16, 16});
  return at::stack({upper, shares.expand({16, 16})}, 2).view({256, 2});
}

Nf4Weight quantise(const at::Tensor& weight) {
  const at::Tensor blocks = weight.reshape({-1, kNf4Block});
  const at::Tensor scales = blocks.abs().amax(1, /*keepdim=*/true);
  const at::Tensor shares = nf4Shares();
  const at::Tensor borders = (shares.slice(0, 1) + shares.slice(0, 0, 15)) / 2;
  // A block of zeros stays one.
  const at::Tensor nearest =
      at::bucketize(blocks / scales.clamp_min(1e-30), borders, /*out_int32=*/true);
  const at::Tensor ofByte = nearest.view({-1, 2});
  return {.codes = (ofByte.select(1, 0) * 16 + ofByte.select(1, 1)).to(at::kByte),
          .scales = scales};
}

at::Tensor dequantise(const Nf4Weight& weight, const at::Tensor& pairs, at::IntArrayRef sizes) {
  const at::Tensor shares = at::embedding(pairs, weight.codes.to(at::kInt));
  return (shares.view({-1, kNf4Block}) * weight.scales).view(sizes);
}

}  // namespace stowage::tools
