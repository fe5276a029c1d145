// SPDX-License-Identifier: Apache-2.0
//
// A look at the module in the middle of a training: it sees what plain libtorch has there, and the
// training goes on with the bits that it would have had without.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

#include <stdexcept>

#include "tests/support/scratch_folder.h"
#include "tests/support/session_training.h"

namespace stowage::tests {
namespace {

/// Beside the small network: statistics that train mode moves on, a mean of the weights that the
/// update keeps outside of the module, gradients that stay.
struct Rich : Training {
  Tensor average;

  Rich() {
    torch::manual_seed(3);
    model = torch::nn::Sequential(torch::nn::Linear(8, 16), torch::nn::BatchNorm1d(16),
                                  torch::nn::Dropout(0.2), torch::nn::Linear(16, 4));
    optimizer = adamW(model->parameters());
    average = model->parameters().front().detach().clone();
    torch::manual_seed(4);
  }
  Description describeRich() {
    Description description = describe();
    description.update = [this] {
      optimizer->step();
      optimizer->zero_grad(/*set_to_none=*/false);
      const at::NoGradGuard noGrad;
      average.mul_(0.9).add_(model->parameters().front(), 0.1);
    };
    return description;
  }
};

float evaluate(Training& training) {
  const at::NoGradGuard noGrad;
  training.model->eval();
  const auto [x, y] = makeBatch(100);
  const float loss = training.forward(x, y).item<float>();
  training.model->train();
  return loss;
}

/// Everything that a look can do to a module.
void disturb(Rich& training) {
  const auto [x, y] = makeBatch(50);
  torch::manual_seed(99);
  at::randn({3});
  training.loss(x, y);  // gradients, statistics, draws
  const at::NoGradGuard noGrad;
  for (const Tensor& parameter : training.model->parameters()) at::Tensor(parameter).fill_(7);
  training.average.zero_();
  training.model->parameters().front().set_requires_grad(false);
  training.model->to(at::kDouble);
  training.model->eval();
}

void expectSameState(Rich& a, Rich& b) {
  expectSame(a, b);
  const auto left = a.model->buffers(), right = b.model->buffers();
  for (size_t i = 0; i < left.size(); ++i) EXPECT_TRUE(sameBits(left[i], right[i])) << "buffer";
  EXPECT_TRUE(sameBits(a.average, b.average)) << "average";
}

Runner makeTightRunner(const Step& step) {
  const Plan all = orThrow(plan(step, {.budget = 1_MiB}));
  ir::Expected<Plan> tight =
      plan(step, {.budget = Bytes(all.keepAll().value() * 8 / 10), .allowed = {}});
  return Runner::create(tight, step);
}

TEST(SessionRead, LeavesNoTraceInTheTraining) {
  Rich eager;
  trainEagerly(eager, eager.describeRich(), 0, 7);
  Rich read;
  const Step step = capture(read.describeRich());
  Runner runner = makeTightRunner(step);
  torch::manual_seed(4);
  for (int i = 0; i < 7; ++i) {
    runner.read([&] { disturb(read); });
    train(runner, read, i, i + 1);
  }
  runner.read([&] { disturb(read); });
  runner.storeTo(read.model);
  expectSameState(eager, read);
}

TEST(SessionRead, SeesWhatPlainLibtorchHas) {
  Rich eager, planned;
  const Step step = capture(planned.describeRich());
  Runner runner = makeTightRunner(step);
  torch::manual_seed(4);
  std::vector<float> before, expected, found;
  before.push_back(evaluate(eager));
  for (int i = 0; i < 6; ++i) {
    trainEagerly(eager, eager.describeRich(), i, i + 1);
    expected.push_back(evaluate(eager) + eager.average.sum().item<float>());
  }
  torch::manual_seed(4);
  before.push_back(runner.read([&] { return evaluate(planned); }));
  EXPECT_EQ(before[0], before[1]);
  for (int i = 0; i < 6; ++i) {
    train(runner, planned, i, i + 1);
    found.push_back(
        runner.read([&] { return evaluate(planned) + planned.average.sum().item<float>(); }));
  }
  EXPECT_EQ(expected, found);
}

TEST(SessionRead, WaitsForTheStepsEnqueued) {
  Training eager;
  trainEagerly(eager, 0, 4);
  Training planned;
  const Step step = capture(planned.describe());
  Runner runner = makeRunner(step);
  for (int i = 0; i < 4; ++i) {
    const auto [x, y] = makeBatch(i);
    runner.enqueue(x, y);
  }
  EXPECT_EQ(evaluate(eager), runner.read([&] { return evaluate(planned); }));
}

TEST(SessionRead, OfATrainingThatWasLoaded) {
  const ScratchFolder folder("session_read");
  Training first;
  float expected = 0;
  {
    const Step step = capture(first.describe());
    Runner runner = makeRunner(step);
    train(runner, first, 0, 3);
    runner.save(folder.at("checkpoint"));
    expected = runner.read([&] { return evaluate(first); });
  }
  Training second;
  const Step step = capture(second.describe());
  Runner runner = makeRunner(step);
  runner.load(folder.at("checkpoint"));
  EXPECT_EQ(expected, runner.read([&] { return evaluate(second); }));
}

TEST(SessionRead, PutsBackWhenTheLookThrows) {
  Rich eager;
  trainEagerly(eager, eager.describeRich(), 0, 5);
  Rich read;
  const Step step = capture(read.describeRich());
  Runner runner = makeRunner(step);
  torch::manual_seed(4);
  train(runner, read, 0, 3);
  const auto look = [&]() -> int {
    disturb(read);
    throw std::out_of_range("stop here");
  };
  EXPECT_THROW(runner.read(look), std::out_of_range);
  train(runner, read, 3, 5);
  runner.storeTo(read.model);
  expectSameState(eager, read);
}

TEST(SessionRead, TheModuleHasNoMemoryAfterwards) {
  Training training;
  const Step step = capture(training.describe());
  Runner runner = makeRunner(step);
  runner.read([&] { evaluate(training); });
  EXPECT_THROW(evaluate(training), c10::Error);
}

TEST(SessionRead, RefusesTheRunnerInsideOfALook) {
  Training eager;
  trainEagerly(eager, 0, 3);
  const ScratchFolder folder("session_read");
  Training planned;
  const Step step = capture(planned.describe());
  Runner runner = makeRunner(step);
  train(runner, planned, 0, 1);
  const auto [x, y] = makeBatch(1);
  const std::vector<std::function<void()>> calls = {
      [&, x = x, y = y] { runner(x, y); }, [&] { runner.save(folder.at("checkpoint")); },
      [&] { runner.load(folder.at("checkpoint")); }, [&] { runner.storeTo(planned.model); },
      [&] { runner.read([] {}); }};
  for (const auto& call : calls) {
    const Failed failed = failureOf([&] { runner.read(call); });
    EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
    expectSays(failed.text, {"inside of read()"});
  }
  train(runner, planned, 1, 3);
  runner.storeTo(planned.model);
  expectSame(eager, planned);
  expectSays(failureOf([&] { runner.read([] {}); }).text, {"given back to the module"});
}

TEST(SessionRead, OfATrainingWhoseLastStepWasRefused) {
  Training eager;
  trainEagerly(eager, 0, 6);
  Training planned;
  bool isChanged = false;
  const Step step = capture(planned.describeChanging(isChanged));
  Runner runner = makeRunner(step);
  train(runner, planned, 0, 6);
  isChanged = true;
  EXPECT_NE(failureOf([&] { train(runner, planned, 6, 7); }).text, "");
  EXPECT_EQ(evaluate(eager), runner.read([&] { return evaluate(planned); }));
}

}  // namespace
}  // namespace stowage::tests
