// SPDX-License-Identifier: Apache-2.0
//
// Random values of trials: what they are like, and what they depend on.
#include "tools/models/random_values.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <vector>

namespace stowage::tools {
namespace {

constexpr int64_t kMany = 1'200'000;  // several threads' worth

TEST(RandomValues, AreTheSameWithAnyNumberOfThreads) {
  constexpr int64_t kFew = 1000;  // one thread draws them
  EXPECT_TRUE(drawNormal({kMany}, c10::kFloat, 7)
                  .slice(0, 0, kFew)
                  .equal(drawNormal({kFew}, c10::kFloat, 7)));
  const at::Tensor lessByOne = drawNormal({kMany - 1}, c10::kFloat, 7);
  EXPECT_TRUE(drawNormal({kMany}, c10::kFloat, 7).slice(0, 0, kMany - 1).equal(lessByOne));
  const at::Tensor alone = drawNormal({kMany / 4}, c10::kFloat, 7);
  EXPECT_TRUE(lessByOne.slice(0, 0, kMany / 4).equal(alone));
}

TEST(RandomValues, DependOnTheSeedAndLeaveTorchsGeneratorAlone) {
  at::manual_seed(3);
  const at::Tensor expected = at::randn({4});
  at::manual_seed(3);
  const at::Tensor values = drawNormal({8, 8}, c10::kFloat, 1);
  EXPECT_TRUE(at::randn({4}).equal(expected));
  EXPECT_FALSE(values.equal(drawNormal({8, 8}, c10::kFloat, 2)));
  EXPECT_TRUE(values.view({64}).slice(0, 0, 10).equal(drawNormal({10}, c10::kFloat, 1)));
}

TEST(RandomValues, AreSpreadAsWanted) {
  for (const c10::ScalarType dtype : {c10::kFloat, c10::kDouble, c10::kBFloat16, c10::kHalf}) {
    const at::Tensor values = drawNormal({kMany}, dtype, 5, 0.02).to(c10::kDouble);
    EXPECT_NEAR(values.mean().item<double>(), 0, 2e-4) << dtype;
    EXPECT_NEAR(values.std().item<double>(), 0.02, 2e-4) << dtype;
    EXPECT_LT(values.abs().max().item<double>(), 0.071) << dtype;
    const double within = values.abs().lt(0.02).to(c10::kDouble).mean().item<double>();
    EXPECT_NEAR(within, 0.67, 0.02) << dtype << ": of a normal distribution 0.683";
    const at::Tensor next = values.slice(0, 1), before = values.slice(0, 0, kMany - 1);
    EXPECT_NEAR((next * before).mean().item<double>() / 4e-4, 0, 0.01) << dtype;
  }
  const at::Tensor values = drawNormal({kMany}, c10::kComplexFloat, 5, 2);
  EXPECT_NEAR(values.abs().square().mean().item<double>(), 4, 0.05);
}

TEST(RandomValues, IntegersAreBelowTheirBound) {
  const at::Tensor values = drawIntegers({kMany}, c10::kInt, 5, 10);
  EXPECT_EQ(values.scalar_type(), c10::kInt);
  const at::Tensor counts = at::bincount(values);
  ASSERT_EQ(counts.numel(), 10);
  EXPECT_GT(counts.min().item<int64_t>(), kMany / 10 * 97 / 100);
  EXPECT_EQ(drawIntegers({3}, c10::kLong, 5, 1).sum().item<int64_t>(), 0);
  EXPECT_EQ(drawIntegers({0}, c10::kBool, 5, 2).numel(), 0);
}

}  // namespace
}  // namespace stowage::tools
