// SPDX-License-Identifier: Apache-2.0
//
// A buffer that the step overwrites without reading it is what eager leaves in it after a planned
// training.
#include "runtime/capture/graph/held_state.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>

#include "ir/text/parser.h"
#include "runtime/stowage.h"

namespace stowage::tests {
namespace {

using literals::operator""_GiB;

struct KeepsItsMean : torch::nn::Module {
  KeepsItsMean() {
    linear = register_module("linear", torch::nn::Linear(6, 6));
    mean = register_buffer("mean", torch::ones({6}));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden = linear(x);
    const torch::NoGradGuard noGrad;
    mean.copy_(hidden.mean(0));
    return hidden;
  }
  torch::nn::Linear linear{nullptr};
  at::Tensor mean;
};

/// A model, its optimizer and what a step does with them.
struct Training {
  at::Tensor loss(const at::Tensor& x) const {
    at::Tensor value = model->forward(x).square().mean();
    value.backward();
    return value;
  }
  void update() {
    optimizer.step();
    optimizer.zero_grad();
  }
  static std::shared_ptr<KeepsItsMean> makeModel() {
    torch::manual_seed(1);
    return std::make_shared<KeepsItsMean>();
  }
  std::shared_ptr<KeepsItsMean> model = makeModel();
  torch::optim::SGD optimizer{model->parameters(), 0.1};
};

TEST(HeldState, BuffersThatNoStepReadsAreKept) {
  constexpr int kSteps = 3;
  const at::Tensor x = torch::arange(24, torch::kFloat).view({4, 6}) / 10;
  Training eager;
  for (int i = 0; i < kSteps; ++i) {
    eager.loss(x + i);
    eager.update();
  }
  Training planned;
  auto step = capture({.loss = [&](const at::Tensor& t) { return planned.loss(t); },
                       .update = [&] { planned.update(); },
                       .module = planned.model,
                       .optimizer = &planned.optimizer},
                      x);
  auto chosen = plan(step, {.budget = 1_GiB});
  auto runner = Runner::create(chosen, step);
  for (int i = 0; i < kSteps; ++i) runner(x + i);
  runner.storeTo(planned.model);
  EXPECT_TRUE(torch::equal(planned.model->mean, eager.model->mean))
      << planned.model->mean << eager.model->mean;
  EXPECT_TRUE(torch::equal(planned.model->linear->weight, eager.model->linear->weight));
}

TEST(HeldState, OnlyTheFirstWriteNeedsWhatWasThere) {
  const ir::Graph graph = llvm::cantFail(ir::parseGraph(R"IR(
graph @g version=1 {
  input %x : f32[4]
  buffer %b : f32[4]
  parameter %w : f32[4]
  gradient %g persistent : f32[4]
forward "":
  aten.zero_.default(out %g)
  aten.copy_.default(out %b, %x)
  aten.copy_.default(out %b, %w)
  aten.copy_.default(out %w, %x)
}
)IR"));
  const ir::Graph held = runtime::holdStateBetweenSteps(graph);
  const auto isWhole = [&](size_t node) { return held.nodes()[node].writes[0].whole; };
  EXPECT_TRUE(isWhole(0));
  EXPECT_FALSE(isWhole(1));
  EXPECT_TRUE(isWhole(2));
  EXPECT_TRUE(isWhole(3));
}

}  // namespace
}  // namespace stowage::tests
