// SPDX-License-Identifier: Apache-2.0
//
// Weights in 4 bits: the 16 shares are the published ones, what is a share already comes back as it
// was, and any other weight comes back as the share nearest to it.
#include "tools/models/nf4.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "tools/models/random_values.h"

namespace stowage::tools {
namespace {

/// 64 rows of 128 weights as initialisation draws them, and one of zeros.
at::Tensor someWeight() {
  at::Tensor weight = drawNormal({64, 128}, at::kFloat, 3, 0.02);
  weight[5].zero_();
  return weight;
}

at::Tensor roundTrip(const at::Tensor& weight) {
  return dequantise(quantise(weight), nf4Pairs(), weight.sizes());
}

TEST(Nf4, SharesAreThePublishedOnes) {
  // QLoRA, 2023, appendix E.
  const at::Tensor published = at::tensor(
      {-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
       -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
       0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
       0.7229568362236023, 1.0},
      at::kDouble);
  EXPECT_EQ(nf4Shares().scalar_type(), at::kFloat);
  EXPECT_LT((nf4Shares().to(at::kDouble) - published).abs().max().item<double>(), 2e-6);
  EXPECT_EQ(nf4Shares()[7].item<float>(), 0);
  EXPECT_EQ(nf4Shares()[15].item<float>(), 1);
}

TEST(Nf4, EveryByteHoldsTwoSharesTheFirstInItsUpperHalf) {
  const at::Tensor shares = nf4Shares(), pairs = nf4Pairs();
  for (int64_t byte = 0; byte < 256; ++byte) {
    EXPECT_TRUE(pairs[byte][0].equal(shares[byte / 16])) << byte;
    EXPECT_TRUE(pairs[byte][1].equal(shares[byte % 16])) << byte;
  }
}

TEST(Nf4, WhatIsAShareComesBackExactly) {
  // Each block of 64 holds all shares four times, 1 among them; its scale is a power of two.
  const at::Tensor blocks = nf4Shares().repeat({8, 4});
  const at::Tensor scales = at::exp2(at::arange(8, at::kFloat) - 6).unsqueeze(1);
  const at::Tensor weight = (blocks * scales).view({16, 32});
  const Nf4Weight stored = quantise(weight);
  EXPECT_TRUE(stored.scales.equal(scales));
  EXPECT_EQ(stored.codes[0].item<int64_t>(), 0x01);
  EXPECT_EQ(stored.codes[7].item<int64_t>(), 0xef);
  EXPECT_TRUE(roundTrip(weight).equal(weight));
}

TEST(Nf4, AWeightBecomesTheShareNearestToIt) {
  const at::Tensor weight = someWeight(), back = roundTrip(weight);
  const at::Tensor scales = weight.view({-1, kNf4Block}).abs().amax(1, /*keepdim=*/true);
  const at::Tensor all = scales * nf4Shares();  // [blocks, 16]
  const at::Tensor distances =
      (weight.view({-1, kNf4Block, 1}) - all.unsqueeze(1)).abs().amin(2).view(weight.sizes());
  EXPECT_TRUE(at::allclose((weight - back).abs(), distances, 0, 1e-8));
  EXPECT_EQ(back[5].abs().max().item<float>(), 0);
  // Half of the widest gap between two shares.
  EXPECT_LE(((weight - back).view({-1, kNf4Block}).abs() - 0.153 * scales).max().item<float>(), 0);
  EXPECT_GT(distances.max().item<float>(), 0) << "nothing was rounded";
}

TEST(Nf4, WhatWasQuantisedOnceIsAFixedPoint) {
  const at::Tensor back = roundTrip(someWeight());
  EXPECT_TRUE(roundTrip(back).equal(back));
}

TEST(Nf4, AWeightTakesFourAndAHalfBits) {
  const Nf4Weight stored = quantise(someWeight());
  EXPECT_EQ(stored.codes.scalar_type(), at::kByte);
  EXPECT_EQ(static_cast<double>(stored.codes.nbytes() + stored.scales.nbytes()) * 8,
            4.5 * 64 * 128);
}

TEST(Nf4, TheDtypeOfPairsAndScalesIsTheResults) {
  const at::Tensor weight = someWeight();
  Nf4Weight stored = quantise(weight);
  stored.scales = stored.scales.to(at::kBFloat16);
  const at::Tensor narrow = dequantise(stored, nf4Pairs().to(at::kBFloat16), weight.sizes());
  EXPECT_EQ(narrow.scalar_type(), at::kBFloat16);
  // Three roundings to 8 bits.
  EXPECT_TRUE(at::allclose(narrow.to(at::kFloat), roundTrip(weight), 3.0 / 256, 0));
}

}  // namespace
}  // namespace stowage::tools
