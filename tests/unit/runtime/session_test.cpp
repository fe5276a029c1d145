// SPDX-License-Identifier: Apache-2.0
//
// The one-call interface as its users meet it: what it gives back, and which mistakes it names.

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/optim/schedulers/step_lr.h>

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/capture/graph/without_memory.h"
#include "tests/support/session_training.h"

namespace stowage::tests {
namespace {

class SessionGivesBack : public testing::TestWithParam<decltype(&adamW)> {};

TEST_P(SessionGivesBack, AnOptimizerWithoutStateWhenTheStepIsDropped) {
  Training eager(GetParam());
  trainEagerly(eager, 0, 3);
  Training captured(GetParam());
  { const Step step = capture(captured.describe()); }
  EXPECT_TRUE(captured.optimizer->state().empty());
  for (const Tensor& parameter : captured.model->parameters()) {
    EXPECT_FALSE(parameter.grad().defined());
  }
  trainEagerly(captured, 0, 3);
  expectSame(eager, captured);
}

TEST_P(SessionGivesBack, StateAndGradientsOfStepsBefore) {
  Training eager(GetParam()), captured(GetParam());
  for (Training* training : {&eager, &captured}) {
    torch::manual_seed(4);
    trainEagerly(*training, 0, 2);
  }
  { const Step step = capture(captured.describe()); }
  const auto [x, y] = makeBatch(2);
  for (Training* training : {&eager, &captured}) {
    torch::manual_seed(6);
    training->loss(x, y);
  }
  // The first of its steps would add to a gradient, the others would not.
  EXPECT_EQ(failureOf([&] { capture(captured.describe()); }).code, ir::ErrorCode::kUnsupported);
  expectSame(eager, captured);
  for (Training* training : {&eager, &captured}) {
    torch::manual_seed(5);
    training->update();
    trainEagerly(*training, 3, 5);
  }
  expectSame(eager, captured);
}

TEST_P(SessionGivesBack, StateOfTheStepsThatRanWhenItIsStored) {
  Training eager(GetParam());
  trainEagerly(eager, 0, 5);
  Training captured(GetParam());
  {
    const Step step = capture(captured.describe());
    Runner runner = makeRunner(step);
    train(runner, captured, 0, 3);
    runner.storeTo(captured.model);
  }
  trainEagerly(captured, 3, 5);
  expectSame(eager, captured);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SessionGivesBack,
                         testing::Values(&adamW, &fusedAdamW, &momentum));

TEST(Session, ABudgetThatIsNoneIsRefused) {
  Training training;
  const Step step = capture(training.describe());
  const auto planWith = [&](PlanOptions options) {
    return failureOf([&] { orThrow(plan(step, options)); });
  };
  const Failed omitted = planWith({});
  EXPECT_EQ(omitted.code, ir::ErrorCode::kInvalidArgument);
  expectSays(omitted.text, {"a budget of 0 bytes", "{.budget = 24_GiB}"});
  const Failed endless = planWith({.budget = Bytes(INT64_MAX)});
  EXPECT_EQ(endless.code, ir::ErrorCode::kInvalidArgument);
  expectSays(endless.text, {"9223372036854775807", "1 PiB", "keepAll"});
}

// Closures of all trainings take turns: what they trace is one thread's at a time.
TEST(Session, TwoTrainingsRunOnTwoThreads) {
  const auto withoutDraws = [](Training& training) {
    for (const auto& child : training.model->children()) {
      if (auto* dropout = child->as<torch::nn::Dropout>()) dropout->options.p(0);
    }
  };
  Training eager;
  withoutDraws(eager);
  trainEagerly(eager, 0, 20);
  std::array<Training, 2> planned;
  std::vector<std::thread> threads;
  for (Training& training : planned) {
    withoutDraws(training);
    threads.emplace_back([&training] {
      const Step step = capture(training.describe());
      Runner runner = makeRunner(step);
      train(runner, training, 0, 20);
      runner.storeTo(training.model);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Training& training : planned) expectSame(eager, training);
}

TEST(Session, AScopeWithoutMemoryEndsBeforeAStep) {
  Training training;
  const Step step = capture(training.describe());
  Runner runner = makeRunner(step);
  {
    const runtime::WithoutMemory scope;
    const Failed failed = failureOf([&] { train(runner, training, 0, 1); });
    EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
    expectSays(failed.text, {"WithoutMemory", "end before a step"});
  }
  train(runner, training, 0, 2);
}

TEST(Session, ScopesWithoutMemoryDoNotNest) {
  const runtime::WithoutMemory scope;
  EXPECT_THROW(runtime::WithoutMemory(), c10::Error);
}

TEST(Session, TellsALossWhileTheNextStepIsUnderWay) {
  Training eager;
  trainEagerly(eager, 0, 4);
  Training planned;
  const Step step = capture(planned.describe());
  Runner runner = makeRunner(step);
  std::vector<int64_t> enqueued;
  for (int i = 0; i < 4; ++i) {
    const auto [x, y] = makeBatch(i);
    enqueued.push_back(runner.enqueue(x, y));
    if (i > 0) planned.losses.push_back(runner.loss(enqueued[i - 1]).item<float>());
  }
  planned.losses.push_back(runner.loss(enqueued.back()).item<float>());
  // Of the last two steps alone, and as often as one likes.
  EXPECT_EQ(runner.loss(enqueued[2]).item<float>(), planned.losses[2]);
  expectSays(failureOf([&] { runner.loss(enqueued[1]); }).text, {"step 2 are not kept"});
  expectSays(failureOf([&] { runner.loss(9); }).text, {"4 steps were enqueued"});
  runner.storeTo(planned.model);
  expectSame(eager, planned);
}

// Dropout that is recomputed in the backward pass puts the generator back to an earlier moment, and
// the loss is there before that.
TEST(Session, WhatTheCallerDrawsBetweenStepsIsAsInPlainLibtorch) {
  struct Wide : Training {
    Wide() {
      torch::manual_seed(3);
      model = torch::nn::Sequential(torch::nn::Linear(8, 2048), torch::nn::Dropout(0.2),
                                    torch::nn::GELU(), torch::nn::Linear(2048, 4));
      optimizer = momentum(model->parameters());
      torch::manual_seed(4);
    }
  };
  // For about as long as a step takes.
  const auto draw = [] {
    Tensor x = at::randn({256, 8});
    for (int i = 0; i < 3000; ++i) x[i % 256] += at::randn({8});
    return std::pair(x, at::randint(4, {256}));
  };
  constexpr int kSteps = 20;
  Wide eager;
  for (int i = 0; i < kSteps; ++i) {
    const auto [x, y] = draw();
    eager.losses.push_back(eager.loss(x, y).item<float>());
    eager.update();
  }
  Wide planned;
  const auto [x, y] = draw();
  const Step step = stowage::capture(planned.describe(), x, y);
  const Plan all = orThrow(plan(step, {.budget = 100_MiB}));
  const Bytes budget(all.keepAll().value() * 6 / 10);
  const Plan made = orThrow(plan(step, {.budget = budget, .allowed = {.offload = false}}));
  const auto& commands = made.schedule().commands;
  ASSERT_TRUE(std::any_of(commands.begin(), commands.end(), [](const ir::Command& command) {
    return command.recompute > 0 && command.rngSlot >= 0;
  })) << "no draw is recomputed";
  Runner runner = Runner::create(made, step);
  torch::manual_seed(4);
  for (int i = 0; i < kSteps; ++i) {
    const auto [inputs, targets] = draw();
    planned.losses.push_back(runner(inputs, targets).item<float>());
  }
  runner.storeTo(planned.model);
  EXPECT_EQ(eager.losses, planned.losses);
}

TEST(Session, ARefusedStepLeavesTheLossBefore) {
  Training eager;
  trainEagerly(eager, 0, 6);
  Training planned;
  bool isChanged = false;
  const Step step = capture(planned.describeChanging(isChanged));
  Runner runner = makeRunner(step);
  const auto enqueue = [&](int i) {
    const auto [x, y] = makeBatch(i);
    return runner.enqueue(x, y);
  };
  int64_t last = -1;
  for (int i = 0; i < 6; ++i) last = enqueue(i);
  isChanged = true;
  EXPECT_NE(failureOf([&] { enqueue(6); }).text, "");
  EXPECT_EQ(runner.loss(last).item<float>(), eager.losses[5]);
}

TEST(Session, GivesBackAfterARefusal) {
  Training eager;
  trainEagerly(eager, 0, 2);
  Training captured;
  torch::optim::StepLR scheduler(*captured.optimizer, 1, 0.5);
  Description description = captured.describe();
  description.update = [&] {
    captured.update();
    scheduler.step();
    captured.model->parameters().front().nonzero();
  };
  EXPECT_EQ(failureOf([&] { capture(description); }).code, ir::ErrorCode::kUnsupported);
  EXPECT_TRUE(captured.optimizer->state().empty());
  trainEagerly(captured, 0, 2);
  expectSame(eager, captured);
}

TEST(Session, GivesBackAfterAnExceptionInTheLoss) {
  Training eager;
  trainEagerly(eager, 0, 2);
  Training captured;
  Description description = captured.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) -> Tensor {
    captured.loss(x, y);
    throw std::runtime_error("stop here");
  };
  expectSays(failureOf([&] { capture(description); }).text, {"stop here"});
  trainEagerly(captured, 0, 2);
  expectSame(eager, captured);
}

TEST(Session, GivesBackAfterAPlanThatSaysNo) {
  Training eager;
  trainEagerly(eager, 0, 2);
  Training captured;
  {
    const Step step = capture(captured.describe());
    ir::Expected<Plan> made = plan(step, {.budget = 1_KiB});
    ASSERT_FALSE(static_cast<bool>(made));
    llvm::consumeError(made.takeError());
  }
  torch::manual_seed(4);
  trainEagerly(captured, 0, 2);
  expectSame(eager, captured);
}

TEST(Session, StoresGradientsThatTheStepKeeps) {
  const auto keeping = [](Training& training) {
    Description description = training.describe();
    description.update = [&training] {
      training.optimizer->step();
      training.optimizer->zero_grad(/*set_to_none=*/false);
    };
    return description;
  };
  Training eager;
  trainEagerly(eager, keeping(eager), 0, 4);
  Training captured;
  {
    const Step step = capture(keeping(captured));
    Runner runner = makeRunner(step);
    train(runner, captured, 0, 2);
    runner.storeTo(captured.model);
  }
  trainEagerly(captured, keeping(captured), 2, 4);
  expectSame(eager, captured);
}

TEST(Session, NamesTheClosureThatIsMissing) {
  Training training;
  Description description = training.describe();
  description.loss = nullptr;
  Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
  expectSays(failed.text, {"`loss`", "missing"});
  description = training.describe();
  description.update = nullptr;
  failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
  expectSays(failed.text, {"`update`", "missing"});
}

struct WrongLoss {
  const char* name;
  std::function<Tensor(Training&, const Tensor&, const Tensor&)> loss;
  std::vector<std::string> says;
};

class SessionRefuses : public testing::TestWithParam<WrongLoss> {};

TEST_P(SessionRefuses, ALossThatIsNone) {
  Training training;
  Description description = training.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    return GetParam().loss(training, x, y);
  };
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
  expectSays(failed.text, GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    Losses, SessionRefuses,
    testing::Values(WrongLoss{"undefined",
                              [](Training& training, const Tensor& x, const Tensor& y) {
                                training.loss(x, y);
                                return Tensor();
                              },
                              {"undefined tensor", "expected the loss"}},
                    WrongLoss{"not_a_scalar",
                              [](Training& training, const Tensor& x, const Tensor&) {
                                const Tensor out = training.model->forward(x);
                                out.sum().backward();
                                return out;
                              },
                              {"[6,4]", "expected a scalar"}},
                    WrongLoss{"without_backward",
                              [](Training& training, const Tensor& x, const Tensor& y) {
                                return training.forward(x, y);
                              },
                              {"no parameter with a gradient", "backward()"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Session, GradientsFromBeforeAreNoBackward) {
  Training training;
  const auto [x, y] = makeBatch(0);
  training.loss(x, y);
  Description description = training.describe();
  description.loss = [&](const Tensor& a, const Tensor& b) { return training.forward(a, b); };
  expectSays(failureOf([&] { capture(description); }).text, {"backward()"});
}

TEST(Session, GradientsOfTwoBackwardsAndFrozenParametersAreCaptured) {
  const auto describe = [](Training& training) {
    training.model->parameters().front().set_requires_grad(false);
    Description description = training.describe();
    description.loss = [&training](const Tensor& x, const Tensor& y) {
      training.loss(x.narrow(0, 0, 3), y.narrow(0, 0, 3));
      return training.loss(x.narrow(0, 3, 3), y.narrow(0, 3, 3));
    };
    return description;
  };
  Training eager;
  trainEagerly(eager, describe(eager), 0, 3);
  Training captured;
  const Step step = capture(describe(captured));
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 3);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
}

TEST(Session, OneHotIsCaptured) {
  const auto describe = [](Training& training) {
    Description description = training.describe();
    description.loss = [&training](const Tensor& x, const Tensor& y) {
      const Tensor loss =
          at::mse_loss(training.model->forward(x), at::one_hot(y, 4).to(at::kFloat));
      loss.backward();
      return loss;
    };
    return description;
  };
  Training eager;
  trainEagerly(eager, describe(eager), 0, 3);
  Training captured;
  const Step step = capture(describe(captured));
  Runner runner = makeRunner(step);
  train(runner, captured, 0, 3);
  runner.storeTo(captured.model);
  expectSame(eager, captured);
  EXPECT_TRUE(at::equal(at::one_hot(at::arange(3)), at::eye(3, at::kLong)));
}

TEST(Session, OneHotWithoutANumberOfClassesIsRefused) {
  Training training;
  Description description = training.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    const Tensor out = training.model->forward(x);
    const Tensor loss = at::mse_loss(out, at::one_hot(y).to(at::kFloat));
    loss.backward();
    return loss;
  };
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, {"aten.one_hot.default", "3, forward", "num_classes"});
}

TEST(Session, AnErrorAfterItemSaysThatItsValueWasMadeUp) {
  Training training;
  Description description = training.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    const Tensor loss = training.loss(x, y);
    TORCH_CHECK(loss.detach().max().item<float>() == 0.25, "the loss looks wrong");
    return loss;
  };
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, {"the loss looks wrong", "made-up value for item()", "aten.max.default"});
}

TEST(Session, TouchingTheModelBetweenStepsNamesStoreTo) {
  Training training;
  const Step step = capture(training.describe());
  const auto [x, y] = makeBatch(0);
  std::string text;
  try {
    training.model->forward(x);
  } catch (const c10::Error& error) {
    text = error.what_without_backtrace();
  }
  expectSays(text, {"whose values a planned training", "storeTo"});
}

TEST(Session, AModelThatLiesElsewhereThanOnTheCpuIsRefused) {
  Training training;
  training.model->register_buffer("elsewhere", at::empty({4}, at::kMeta));
  const Failed failed = failureOf([&] { capture(training.describe()); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, {"elsewhere lies on device meta", "expected the module", "on the CPU"});
}

TEST(Session, CudaWithoutAGpuSaysWhatToDoInstead) {
  Training training;
  Description description = training.describe();
  description.device = "cuda";
  const Failed failed = failureOf([&] { capture(description); });
  if (failed.text.empty()) GTEST_SKIP() << "this process has CUDA";
  EXPECT_EQ(failed.code, ir::ErrorCode::kEnvironment);
  expectSays(failed.text, {"no CUDA device", "linked with", "the device cpu"});
  EXPECT_EQ(failed.text.find("enableFakeGpu"), std::string::npos);
}

}  // namespace
}  // namespace stowage::tests
