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
  const Failed again = failureOf([&] { runner.storeTo(captured.model); });
  EXPECT_EQ(again.code, ir::ErrorCode::kInvalidArgument);
  expectSays(again.text, {"storeTo has given the tensors back already"});
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

/// A loss scaled by `*factor`.
Description scaled(Training& training, const double& factor) {
  Description description = training.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    Tensor loss = training.forward(x, y) * factor;
    loss.backward();
    return loss;
  };
  return description;
}

TEST(SessionNumbers, ANumberThatTheUpdateChangesIsFollowed) {
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

/// What runs before step `i`: rates by hand.
using BeforeStep = std::function<void(Training&, int step)>;

void warmUp(Training& training, int step) { training.setRate(1e-3 * (step + 1)); }

void trainWith(const BeforeStep& before, Training& training, const Description& step, int steps) {
  for (int i = 0; i < steps; ++i) {
    before(training, i);
    trainEagerly(training, step, i, i + 1);
  }
}

void trainWith(const BeforeStep& before, Training& training, Runner& runner, int steps) {
  for (int i = 0; i < steps; ++i) {
    before(training, i);
    train(runner, training, i, i + 1);
  }
}

struct Rates {
  const char* name;
  decltype(&adamW) makeOptimizer;
  BeforeStep before;
};

class SessionRates : public testing::TestWithParam<Rates> {};

TEST_P(SessionRates, SetByHandEqualEager) {
  const auto clipping = [](Training& training) {
    Description description = training.describe();
    description.update = [&training] {
      torch::nn::utils::clip_grad_norm_(training.model->parameters(), 0.5);
      training.update();
    };
    return description;
  };
  Training eager(GetParam().makeOptimizer);
  trainWith(GetParam().before, eager, clipping(eager), 8);
  Training captured(GetParam().makeOptimizer);
  const Step step = capture(clipping(captured));
  Runner runner = makeRunner(step);
  trainWith(GetParam().before, captured, runner, 8);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

INSTANTIATE_TEST_SUITE_P(Rates, SessionRates,
                         testing::Values(Rates{"adamw_warms_up", &adamW, &warmUp},
                                         Rates{"momentum_warms_up", &momentum, &warmUp},
                                         Rates{"set_once", &adamW,
                                               [](Training& training, int step) {
                                                 if (step == 2) training.setRate(0.1);
                                               }},
                                         Rates{"set_and_set_back", &adamW,
                                               [](Training& training, int step) {
                                                 if (step == 1) training.setRate(0.1);
                                                 if (step == 3) training.setRate(1e-2);
                                               }}),
                         [](const auto& info) { return std::string(info.param.name); });

/// Its update steps a scheduler.
struct Scheduled : Training {
  torch::optim::StepLR scheduler{*optimizer, 3, 0.5};
  Description describe() {
    Description description = Training::describe();
    description.update = [this] {
      update();
      scheduler.step();
    };
    return description;
  }
};

TEST(SessionScheduler, InTheUpdateEqualsEager) {
  Scheduled eager;
  trainEagerly(eager, eager.describe(), 0, 8);
  Scheduled captured;
  const Step step = capture(captured.describe());
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 8);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

TEST(SessionScheduler, WithAWarmUpByHandEqualsEagerWhenItIsNamed) {
  Scheduled eager;
  trainWith(&warmUp, eager, eager.describe(), 8);
  Scheduled captured;
  Description description = captured.describe();
  description.schedulers = {&captured.scheduler};
  const Step step = capture(description);
  Runner runner = makeRunner(step);
  trainWith(&warmUp, captured, runner, 8);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

TEST(SessionScheduler, ThatIsNamedIsGivenBack) {
  Scheduled eager;
  trainEagerly(eager, eager.describe(), 0, 4);
  Scheduled captured;
  Description description = captured.describe();
  description.schedulers = {&captured.scheduler};
  { const Step step = capture(description); }
  trainEagerly(captured, captured.describe(), 0, 4);
  expectSame(eager, captured);
}

TEST(SessionScheduler, ARateByHandWhereItChangesTheRateNamesTheField) {
  Scheduled captured;
  const Step step = capture(captured.describe());
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 3);
  captured.setRate(0.5);
  const auto [x, y] = makeBatch(3);
  const Failed failed = failureOf([&, x = x, y = y] { runner(x, y); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kPlanMismatch);
  expectSays(failed.text,
             {"changed by hand before step 4", "`schedulers`", "HostState::kDeclared"});
}

}  // namespace
}  // namespace stowage::tests
