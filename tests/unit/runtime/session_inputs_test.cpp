// SPDX-License-Identifier: Apache-2.0
//
// Inputs and their layouts: kernels choose their order by strides, so a plan keeps those of the
// examples and takes no others.

#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>

#include <functional>

#include "tests/support/trained_twice.h"

namespace stowage::tests {
namespace {

using Layout = std::function<Tensor(const Tensor&)>;

struct Laid {
  const char* name;
  Layout layout;
};

/// Dropout on the input itself, whose mask follows its strides.
MakeProgram onImages(const Layout& layout) {
  return [layout] {
    const auto training = std::make_shared<Training>();
    torch::manual_seed(3);
    training->model = torch::nn::Sequential(torch::nn::Dropout(0.3),
                                            torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3)),
                                            torch::nn::Flatten(), torch::nn::Linear(4 * 4 * 5, 4));
    training->optimizer = adamW(training->model->parameters());
    Program program;
    program.module = training->model.ptr();
    program.optimizers = training->optimizer.get();
    program.loss = [training](const Tensor& x, const Tensor& y) { return training->loss(x, y); };
    program.update = [training] { training->update(); };
    program.batch = [layout](int i) {
      const Tensor x =
          at::sin(at::arange(2 * 3 * 6 * 7).view({2, 3, 6, 7}).to(at::kFloat) * (i + 1));
      return std::pair(layout(x), at::arange(2).add(i).remainder(4));
    };
    return program;
  };
}

class InputLayout : public testing::TestWithParam<Laid> {};

TEST_P(InputLayout, IsKept) {
  const Trained trained = trainTwice(onImages(GetParam().layout), {.steps = 4});
  EXPECT_EQ(trained.refusal.text, "");
  EXPECT_EQ(trained.difference, "");
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, InputLayout,
    testing::Values(
        Laid{"contiguous", [](const Tensor& x) { return x; }},
        Laid{"channels_last",
             [](const Tensor& x) { return x.contiguous(at::MemoryFormat::ChannelsLast); }},
        Laid{"transposed",
             [](const Tensor& x) { return x.transpose(2, 3).contiguous().transpose(2, 3); }},
        Laid{"with_gaps",
             [](const Tensor& x) {
               return at::cat({x, x}, 3).slice(3, 2, 9);
             }},
        Laid{"every_second",
             [](const Tensor& x) {
               return at::stack({x, x * 2}, 4).flatten(3).slice(3, 1, 14, 2);
             }},
        Laid{"expanded",
             [](const Tensor& x) {
               return x.slice(0, 0, 1).expand({2, 3, 6, 7});
             }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(InputLayouts, OtherThanTheExamplesAreRefusedAndNothingIsRun) {
  Training eager;
  trainEagerly(eager, 0, 4);
  Training planned;
  const Step step = capture(planned.describe());
  Runner runner = makeRunner(step);
  train(runner, planned, 0, 2);
  const auto [x, y] = makeBatch(2);
  const Tensor transposed = x.t().contiguous().t();
  const Failed failed = failureOf([&, y = y] { runner(transposed, y); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
  expectSays(failed.text,
             {"input 'input0'", "found strides [1,6]", "expected [8,1]", "contiguous()"});
  train(runner, planned, 2, 4);
  runner.storeTo(planned.model);
  expectSame(eager, planned);
}

TEST(InputLayouts, StridesOfDimensionsOfOneDoNotCount) {
  const MakeProgram make = [] {
    const auto training = std::make_shared<Training>();
    Program program;
    program.module = training->model.ptr();
    program.optimizers = training->optimizer.get();
    program.loss = [training](const Tensor& x, const Tensor& y) {
      return training->loss(x.squeeze(0), y);
    };
    program.update = [training] { training->update(); };
    program.batch = [](int i) {
      const auto [x, y] = makeBatch(i);
      return std::pair(i < 2 ? x.unsqueeze(0) : x.as_strided({1, 6, 8}, {1, 8, 1}), y);
    };
    return program;
  };
  const Trained trained = trainTwice(make, {.steps = 4});
  EXPECT_EQ(trained.refusal.text, "");
  EXPECT_EQ(trained.difference, "");
}

}  // namespace
}  // namespace stowage::tests
