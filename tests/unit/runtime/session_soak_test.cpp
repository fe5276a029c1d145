// SPDX-License-Identifier: Apache-2.0
//
// Thousands of steps on one heap: what a step allocates, it frees.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <cstdlib>

#include "tests/support/trained_twice.h"

namespace stowage::tests {
namespace {

int64_t heapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

int steps() {
  const char* asked = std::getenv("STOWAGE_SOAK_STEPS");
  return asked == nullptr ? 20000 : std::atoi(asked);
}

struct Soaked {
  const char* name;
  decltype(&adamW) makeOptimizer;
  bool lossIsTraced;  // in each step
};

class Soak : public testing::TestWithParam<Soaked> {};

TEST_P(Soak, TwentyThousandStepsLeaveTheHeapAsItWas) {
  at::set_num_threads(1);  // more would wait for each other
  Training training(GetParam().makeOptimizer);
  training.setRate(1e-5);
  double factor = 1;
  Description description = training.describe();
  if (GetParam().lossIsTraced) {
    description.loss = [&](const Tensor& x, const Tensor& y) {
      const Tensor loss = training.forward(x, y) * factor;
      loss.backward();
      return loss;
    };
    description.update = [&] {
      training.update();
      factor = 2.5 - factor;
    };
  }
  const Step step = capture(description);
  Runner runner = makeRunner(step);
  const auto [x, y] = makeBatch(0);
  const auto take = [&, x = x, y = y](int steps) {
    float sum = 0;
    for (int i = 0; i < steps; ++i) sum += runner(x, y).item<float>();
    return sum;
  };
  EXPECT_TRUE(std::isfinite(take(2000)));
  const int64_t before = heapBytes();
  EXPECT_TRUE(std::isfinite(take(steps())));
  // An entry of 16 bytes a step would be 320 KB.
  EXPECT_LT(std::abs(heapBytes() - before), 64 << 10);
}

INSTANTIATE_TEST_SUITE_P(Trainings, Soak,
                         testing::Values(Soaked{"adamw", &adamW, false},
                                         Soaked{"traced_loss", &momentum, true}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stowage::tests
