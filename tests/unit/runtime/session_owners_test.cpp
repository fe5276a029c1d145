// SPDX-License-Identifier: Apache-2.0
//
// Whose state is whose: several optimizers, tensors that nobody registered, a second runner of one
// step; and steps whose first one does something that later ones do not.

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>

#include <functional>

#include "tests/support/session_training.h"

namespace stowage::tests {
namespace {

/// The lower layer's AdamW and the upper layer's momentum, stepped one after the other.
struct TwoOptimizers : Training {
  torch::optim::SGD upper;

  TwoOptimizers() : upper(std::vector<Tensor>(), torch::optim::SGDOptions(0.05).momentum(0.9)) {
    const std::vector<Tensor> all = model->parameters();
    optimizer = adamW({all[0], all[1]});
    upper.param_groups()[0].params() = {all[2], all[3]};
  }
  Description describe() {
    Description description = Training::describe();
    description.optimizer = {optimizer.get(), &upper};
    description.update = [this] {
      optimizer->step();
      upper.step();
      model->zero_grad();
    };
    return description;
  }
};

TEST(SessionOwners, TwoOptimizersTrainAsEagerlyAndGetTheirStateBack) {
  TwoOptimizers eager;
  trainEagerly(eager, eager.describe(), 0, 8);
  TwoOptimizers captured;
  trainEagerly(captured, captured.describe(), 0, 2);
  {
    const Step step = capture(captured.describe());
    Runner runner = makeRunner(step);
    train(runner, captured, 2, 4);
    runner.storeTo(captured.model);
  }
  trainEagerly(captured, captured.describe(), 4, 6);
  const Step step = capture(captured.describe());
  Runner runner = makeRunner(step);
  train(runner, captured, 6, 8);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

TEST(SessionOwners, BothOptimizersArePutBackWhenTheStepIsDropped) {
  TwoOptimizers eager;
  trainEagerly(eager, eager.describe(), 0, 5);
  TwoOptimizers captured;
  { const Step step = capture(captured.describe()); }
  trainEagerly(captured, captured.describe(), 0, 3);
  { const Step step = capture(captured.describe()); }
  trainEagerly(captured, captured.describe(), 3, 5);
  expectSame(eager, captured);
}

TEST(SessionOwners, RatesOfTwoOptimizersSetByHandAreFollowed) {
  const auto slowDown = [](TwoOptimizers& training) {
    training.setRate(1e-3);
    training.upper.param_groups()[0].options().set_lr(1e-2);
  };
  TwoOptimizers eager;
  trainEagerly(eager, eager.describe(), 0, 2);
  slowDown(eager);
  trainEagerly(eager, eager.describe(), 2, 6);
  TwoOptimizers captured;
  const Step step = capture(captured.describe());
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 2);
  slowDown(captured);
  train(runner, captured, 2, 6);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

TEST(SessionOwners, AnOptimizerThatIsNotNamedIsRefused) {
  TwoOptimizers training;
  Description description = training.describe();
  description.optimizer = training.optimizer.get();
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, {"parameter '3.weight'", "name all of them", "{&first, &second}"});
}

// Neither its module nor its optimizer is named: its gradients are nobody's.
TEST(SessionOwners, AModelBesideTheModuleWhoseOptimizerIsNotNamedIsRefused) {
  Training training, beside;
  Description description = training.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    const Tensor loss = training.forward(x, y) + beside.forward(x, y);
    loss.backward();
    return loss;
  };
  description.update = [&] {
    training.update();
    beside.update();
  };
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, {"trains a tensor of", "{&first, &second}", "register_module"});
}

// With its optimizer it needs no module.
TEST(SessionOwners, AModelBesideTheModuleTrainsWhenItsOptimizerIsNamed) {
  const auto both = [](Training& training, Training& beside) {
    Description description = training.describe();
    description.optimizer = {training.optimizer.get(), beside.optimizer.get()};
    description.loss = [&](const Tensor& x, const Tensor& y) {
      const Tensor loss = training.forward(x, y) + beside.forward(x, y);
      loss.backward();
      return loss;
    };
    description.update = [&] {
      training.update();
      beside.update();
    };
    return description;
  };
  Training eager, eagerBeside;
  torch::manual_seed(4);
  trainEagerly(eager, both(eager, eagerBeside), 0, 7);
  Training planned, plannedBeside;
  const Step step = capture(both(planned, plannedBeside));
  Runner runner = makeRunner(step);
  torch::manual_seed(4);
  train(runner, planned, 0, 7);
  runner.storeTo(planned.model);
  expectSame(eager, planned);
  plannedBeside.losses = eagerBeside.losses;
  expectSame(eagerBeside, plannedBeside);
}

TEST(SessionOwners, WhatAnEarlierCaptureCouldNotGiveBackIsRefused) {
  TwoOptimizers training;
  Description description = training.describe();
  description.optimizer = training.optimizer.get();
  description.hostState = HostState::kDeclared;
  {
    const Step step = capture(description);
    Runner runner = makeRunner(step);
    train(runner, training, 0, 2);
    runner.storeTo(training.model);
  }
  const Failed failed = failureOf([&] { capture(training.describe()); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, {"no memory", "name all optimizers"});
}

/// A loss that keeps a running mean of its outputs in `mean`, which nobody registered.
Description withMean(Training& training, const Tensor& mean) {
  Description description = training.describe();
  description.loss = [&training, mean](const Tensor& x, const Tensor& y) {
    const Tensor out = training.model->forward(x);
    {
      const at::NoGradGuard untracked;
      mean.mul_(0.5).add_(out.mean(0));
    }
    const Tensor loss = torch::nn::functional::cross_entropy(out + mean, y);
    loss.backward();
    return loss;
  };
  return description;
}

TEST(SessionOwners, ATensorThatNobodyRegisteredGetsItsValueBack) {
  Training eager;
  const Tensor eagerMean = at::zeros({4});
  trainEagerly(eager, withMean(eager, eagerMean), 0, 5);
  Training captured;
  const Tensor mean = at::zeros({4});
  const Step step = capture(withMean(captured, mean));
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 3);
  runner.storeTo(captured.model);
  trainEagerly(captured, withMean(captured, mean), 3, 5);
  expectSame(eager, captured);
  EXPECT_TRUE(sameBits(eagerMean, mean));
}

TEST(SessionOwners, ASecondRunnerOfStepsThatWereTakenIsRefused) {
  Training training;
  const Step step = capture(training.describe());
  Runner unused = makeRunner(step);
  Runner first = makeRunner(step);
  train(first, training, 0, 1);
  const Failed failed = failureOf([&] { train(unused, training, 0, 1); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
  expectSays(failed.text, {"another runner", "capture again"});
  train(first, training, 1, 3);
  first.storeTo(training.model);
  Training eager;
  trainEagerly(eager, 0, 3);
  expectSame(eager, training);
}

TEST(SessionOwners, ALossThatTheUpdateWritesIsRefused) {
  Training training;
  Description description = training.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    training.loss(x, y);
    return training.model->parameters()[1].select(0, 3);
  };
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
  expectSays(failed.text, {"a view of 0.bias", "the update writes", "clone"});
}

struct FirstStep {
  const char* name;
  std::function<void(Training&)> inLoss, inUpdate;
  std::vector<std::string> says;
  decltype(&adamW) optimizer = &adamW;
};

class SessionRefusesAFirstStep : public testing::TestWithParam<FirstStep> {};

TEST_P(SessionRefusesAFirstStep, ThatDoesMoreThanLaterOnes) {
  Training training(GetParam().optimizer);
  bool isFirst = true;
  Description description = training.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    if (isFirst && GetParam().inLoss) GetParam().inLoss(training);
    return training.loss(x, y);
  };
  description.update = [&] {
    if (isFirst && GetParam().inUpdate) GetParam().inUpdate(training);
    isFirst = false;
    training.update();
  };
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, GetParam().says);
  expectSays(failed.text, {"first step only", "run one step before capturing"});
  // After it, the step is the same each time.
  isFirst = false;
  EXPECT_EQ(failureOf([&] { capture(description); }).text, "");
}

void clampWeights(Training& training) {
  const at::NoGradGuard untracked;
  training.model->parameters()[0].clamp_(-0.1, 0.1);
}

void clipGradients(Training& training) {
  torch::nn::utils::clip_grad_value_(training.model->parameters(), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    Steps, SessionRefusesAFirstStep,
    testing::Values(
        FirstStep{"weights_clamped_in_the_loss", clampWeights, {}, {"aten.clamp_.default"}},
        FirstStep{"weights_clamped_in_the_update", {}, clampWeights, {"clamp_", "changes what"}},
        FirstStep{"gradients_clipped", {}, clipGradients, {"aten.clamp_.default", "changes what"}},
        FirstStep{"gradients_clipped_that_momentum_begins_with",
                  {},
                  clipGradients,
                  {"aten.clamp_.default", "changes what"},
                  &momentum},
        FirstStep{"a_number_drawn",
                  {},
                  [](Training&) { at::rand({3}); },
                  {"aten.rand", "draws random numbers"}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stowage::tests
