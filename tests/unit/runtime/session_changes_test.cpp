// SPDX-License-Identifier: Apache-2.0
//
// What changes between the steps of a plan: followed with the bits of plain libtorch, refused, or
// static by design.

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/schedulers/step_lr.h>

#include <functional>

#include "tests/support/session_training.h"

namespace stowage::tests {
namespace {

struct Switch {
  const char* name;
  std::function<void(Training&, bool changed)> turn;
  std::vector<std::string> says;
};

class SessionRefusesAStep : public testing::TestWithParam<Switch> {};

TEST_P(SessionRefusesAStep, WhoseModuleWasSwitched) {
  Training eager;
  trainEagerly(eager, 0, 6);
  Training captured;
  const Step step = capture(captured.describe());
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 3);
  GetParam().turn(captured, true);
  const auto [x, y] = makeBatch(3);
  const Failed failed = failureOf([&] { runner(x, y); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kPlanMismatch);
  expectSays(failed.text, GetParam().says);
  GetParam().turn(captured, false);
  train(runner, captured, 3, 6);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

INSTANTIATE_TEST_SUITE_P(
    Switches, SessionRefusesAStep,
    testing::Values(Switch{"to_eval",
                           [](Training& training, bool on) { training.model->train(!on); },
                           {"the step changed", "eval()"}},
                    Switch{"a_submodule_to_eval",
                           [](Training& training, bool on) { training.model->ptr(2)->train(!on); },
                           {"submodule '2'", "eval()"}},
                    Switch{"frozen",
                           [](Training& training, bool on) {
                             training.model->named_parameters()["3.bias"].set_requires_grad(!on);
                           },
                           {"parameter '3.bias'", "frozen"}}),
    [](const auto& info) { return std::string(info.param.name); });

/// A loss scaled by `*factor`, and by `weight` (undefined: not).
Description scaled(Training& training, const double& factor, const Tensor& weight = {}) {
  Description description = training.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    Tensor loss = training.forward(x, y) * factor;
    if (weight.defined()) loss = loss * weight;
    loss.backward();
    return loss;
  };
  return description;
}

TEST(SessionStatic, ANumberThatTheLossReadsFromOutsideStaysAsCaptured) {
  double factor = 0.5;
  Training eager;
  trainEagerly(eager, scaled(eager, factor), 0, 4);
  Training captured;
  const Step step = capture(scaled(captured, factor));
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 2);
  factor = 4;
  train(runner, captured, 2, 4);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

TEST(SessionStatic, ANumberThatTheUpdateChangesIsFollowed) {
  const auto halving = [](Training& training, double& factor) {
    Description description = scaled(training, factor);
    description.update = [&] {
      training.update();
      factor *= 0.75;
    };
    return description;
  };
  Training eager;
  double eagerFactor = 2;
  trainEagerly(eager, halving(eager, eagerFactor), 0, 7);
  Training captured;
  double factor = 2;
  const Step step = capture(halving(captured, factor));
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 7);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

TEST(SessionStatic, ATensorOfTheLossIsAConstant) {
  const double factor = 1;
  Tensor weight = at::full({}, 0.5);
  Training eager;
  trainEagerly(eager, scaled(eager, factor, weight), 0, 4);
  Training captured;
  const Step step = capture(scaled(captured, factor, weight));
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 2);
  weight.fill_(4);
  train(runner, captured, 2, 4);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

}  // namespace
}  // namespace stowage::tests
