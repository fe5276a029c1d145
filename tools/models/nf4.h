// SPDX-License-Identifier: Apache-2.0
//
// Frozen weights in 4 bits, as QLoRA stores them: blocks of 64 weights share a scale, the largest
// magnitude among them, and each weight is one of 16 shares of it ("NF4": quantiles of the normal
// distribution). Source: Dettmers et al., "QLoRA", 2023, section 3.
// Ordinary ops alone, so a step with them is captured and planned like any other.
// Not here: scales that are quantised once more; gradients of what is stored.
#ifndef STOWAGE_TOOLS_MODELS_NF4_H_
#define STOWAGE_TOOLS_MODELS_NF4_H_

#include <ATen/core/Tensor.h>

namespace stowage::tools {

inline constexpr int64_t kNf4Block = 64;  // weights that share a scale

/// A weight of n elements, n a multiple of kNf4Block.
struct Nf4Weight {
  at::Tensor codes;   // uint8 [n / 2]: two weights a byte, the first in the upper half
  at::Tensor scales;  // [n / kNf4Block, 1]
};

/// The 16 shares, ascending from -1 to 1: float32 [16].
at::Tensor nf4Shares();

/// The two shares of each byte: float32 [256, 2].
at::Tensor nf4Pairs();

/// The nearest share of each weight; `weight` is float32 of any shape.
Nf4Weight quantise(const at::Tensor& weight);

/// A tensor of `sizes`, in the dtype that `pairs` and the scales have.
at::Tensor dequantise(const Nf4Weight& weight, const at::Tensor& pairs, at::IntArrayRef sizes);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MODELS_NF4_H_
