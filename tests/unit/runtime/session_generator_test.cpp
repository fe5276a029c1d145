// SPDX-License-Identifier: Apache-2.0
//
// The random number generator of a step: plans draw as plain libtorch does, and a step that sets
// its state is refused.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/trained_twice.h"

namespace stowage::tests {
namespace {

at::Generator generatorOfCpu() { return at::globalContext().defaultGenerator(at::kCPU); }

Tensor stateOf(const at::Generator& generator) { return generator.get_state(); }

/// Dropout in forward, then again from the same numbers, as checkpointing by hand does.
Tensor checkpointed(Training& training, const Tensor& x, const Tensor& y) {
  at::Generator generator = generatorOfCpu();
  const Tensor before = stateOf(generator);
  {
    const at::NoGradGuard untracked;
    training.model->forward(x);
  }
  const Tensor after = stateOf(generator);
  generator.set_state(before);
  const Tensor loss = training.forward(x, y);
  generator.set_state(after);
  loss.backward();
  return loss;
}

struct Setting {
  const char* name;
  std::function<Tensor(Training&, const Tensor& x, const Tensor& y)> loss;
  std::vector<std::string> says;
};

class GeneratorSet : public testing::TestWithParam<Setting> {};

TEST_P(GeneratorSet, InTheStepIsRefusedNamingWhere) {
  Training training;
  Description description = training.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    return GetParam().loss(training, x, y);
  };
  const Tensor before = stateOf(generatorOfCpu());
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, {"random number generator", "manual_seed, set_state"});
  expectSays(failed.text, GetParam().says);
  EXPECT_TRUE(sameBits(before, stateOf(generatorOfCpu()))) << "capture moved the generator";
}

INSTANTIATE_TEST_SUITE_P(
    Settings, GeneratorSet,
    testing::Values(Setting{"seeded_before_forward",
                            [](Training& training, const Tensor& x, const Tensor& y) {
                              torch::manual_seed(7);
                              return training.loss(x, y);
                            },
                            {"aten.", "forward"}},
                    Setting{"seeded_between_forward_and_backward",
                            [](Training& training, const Tensor& x, const Tensor& y) {
                              const Tensor loss = training.forward(x, y);
                              torch::manual_seed(7);
                              loss.backward();
                              return loss;
                            },
                            {"aten.ones_like"}},
                    Setting{"seeded_at_the_end",
                            [](Training& training, const Tensor& x, const Tensor& y) {
                              const Tensor loss = training.loss(x, y);
                              torch::manual_seed(7);
                              return loss;
                            },
                            {"optimizer"}},
                    Setting{"checkpointed_by_hand", &checkpointed, {"leave it to the plan"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Generator, SeededByTheUpdateAtItsEndIsRefused) {
  Training training;
  Description description = training.describe();
  description.update = [&] {
    training.update();
    torch::manual_seed(7);
  };
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, {"after its last op", "seed between steps"});
}

TEST(Generator, SeededInALaterStepEndsTheTraining) {
  const MakeProgram make = [] {
    const auto training = std::make_shared<Training>();
    const auto updates = std::make_shared<int>(0);
    Program program;
    program.module = training->model.ptr();
    program.optimizers = training->optimizer.get();
    program.loss = [training, updates](const Tensor& x, const Tensor& y) {
      if (*updates == 6) torch::manual_seed(7);
      return training->loss(x, y);
    };
    program.update = [training, updates] {
      training->update();
      ++*updates;
    };
    return program;
  };
  const Trained trained = trainTwice(make);
  EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(trained.steps, 6);
  expectSays(trained.refusal.text, {"seeds libtorch's random number generator"});
  EXPECT_EQ(trained.difference, "");
}

}  // namespace
}  // namespace stowage::tests
