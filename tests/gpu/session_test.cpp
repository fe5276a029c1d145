// SPDX-License-Identifier: Apache-2.0
//
// The one-call interface on a GPU: somebody's own closures, captured for CUDA from a module on the
// CPU, planned below what they need, held against plain libtorch on the same GPU. Skipped where
// there is none, unless the environment's STOWAGE_EXPECT_GPU says that there is.

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "runtime/gpu/gpu_library.h"
#include "runtime/torch/deterministic_mode.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/session_training.h"

namespace stowage::tests {
namespace {

constexpr int64_t kRows = 4096, kWidth = 1024, kClasses = 16;
constexpr int kStepOfLastClass = 3;  // the only one whose targets have it
// Of what the step needs when all is kept: less than parameters, moments and activations.
constexpr int64_t kPercent = 60;

/// A perceptron with dropout and a schedule of the learning rate.
struct Perceptron {
  torch::nn::Sequential model;
  std::unique_ptr<torch::optim::AdamW> optimizer;
  std::unique_ptr<torch::optim::StepLR> schedule;
  std::vector<float> losses;
  int updates = 0;
  /// What the closure `loss` does beside; null: nothing.
  Tensor (*change)(Perceptron&, const Tensor& loss, const Tensor& y) = nullptr;

  Perceptron() {
    torch::manual_seed(3);
    for (int layer = 0; layer < 6; ++layer) {
      model->push_back(torch::nn::Linear(kWidth, kWidth));
      model->push_back(torch::nn::GELU());
      model->push_back(torch::nn::Dropout(0.2));
    }
    model->push_back(torch::nn::Linear(kWidth, kClasses));
    optimizer = std::make_unique<torch::optim::AdamW>(model->parameters(), 1e-3);
    schedule = std::make_unique<torch::optim::StepLR>(*optimizer, 2, 0.5);
  }

  Description describe() {
    return {.loss =
                [this](const Tensor& x, const Tensor& y) {
                  Tensor loss = torch::nn::functional::cross_entropy(model->forward(x), y);
                  if (change != nullptr) loss = change(*this, loss, y);
                  loss.backward();
                  return loss;
                },
            .update =
                [this] {
                  optimizer->step();
                  optimizer->zero_grad();
                  schedule->step();
                  ++updates;
                },
            .module = model,
            .optimizer = optimizer.get(),
            .device = "cuda",
            .schedulers = {schedule.get()},
            .rewind = [this] { updates = 0; }};
  }
};

std::pair<Tensor, Tensor> makeRows(int step) {
  const Tensor x = at::arange(kRows * kWidth).view({kRows, kWidth}).to(at::kFloat);
  const int64_t classes = step == kStepOfLastClass ? kClasses : kClasses - 1;
  return {at::sin(x * (step + 1)), at::arange(kRows).remainder(classes)};
}

Step captureOnGpu(Perceptron& training) {
  const auto [x, y] = makeRows(0);
  return stowage::capture(training.describe(), x, y);
}

void trainOnGpu(Perceptron& training, int steps) {
  const runtime::DeterministicMode mode(true);
  training.model->to(at::kCUDA);
  const Description step = training.describe();
  torch::manual_seed(4);
  for (int i = 0; i < steps; ++i) {
    const auto [x, y] = makeRows(i);
    training.losses.push_back(step.loss(x.to(at::kCUDA), y.to(at::kCUDA)).item<float>());
    step.update();
  }
}

void trainPlanned(Runner& runner, Perceptron& training, int first, int last) {
  for (int i = first; i < last; ++i) {
    const auto [x, y] = makeRows(i);
    training.losses.push_back(runner(x, y).item<float>());
  }
}

void expectSameValues(const Perceptron& eager, const Perceptron& planned) {
  const auto left = eager.model->parameters(), right = planned.model->parameters();
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(sameBits(left[i].cpu(), right[i].cpu())) << "parameter " << i;
  }
}

class GpuSession : public testing::Test {
 protected:
  void SetUp() override {
    ir::Expected<runtime::GpuLibrary*> library = runtime::loadGpuLibrary();
    if (library) return;
    const std::string why = "no GPU here: " + ir::describe(library.takeError());
    if (std::getenv("STOWAGE_EXPECT_GPU") != nullptr) FAIL() << why;
    GTEST_SKIP() << why;
  }

  Bytes budgetOf(const Step& step) {
    const Plan all = orThrow(plan(step, {.budget = 8_GiB}));
    EXPECT_LT(all.keepAll(), all.budget());
    return Bytes(all.keepAll().value() / 100 * kPercent);
  }
};

TEST_F(GpuSession, TrainsAsPlainLibtorchWithinABudget) {
  Perceptron eager;
  trainOnGpu(eager, 6);
  Perceptron planned;
  const Step step = captureOnGpu(planned);
  const Plan made = orThrow(plan(step, {.budget = budgetOf(step)}));
  ASSERT_LT(made.budget(), made.keepAll());
  EXPECT_TRUE(std::any_of(
      made.schedule().commands.begin(), made.schedule().commands.end(),
      [](const ir::Command& command) { return command.kind == ir::CommandKind::kCopy; }))
      << "nothing is copied: the budget holds everything";
  Runner runner = Runner::create(made, step);
  torch::manual_seed(4);
  trainPlanned(runner, planned, 0, 6);
  runner.storeTo(planned.model);
  EXPECT_EQ(eager.losses, planned.losses);
  expectSameValues(eager, planned);
}

TEST_F(GpuSession, GoesOnFromACheckpoint) {
  const ScratchFolder folder("stowage_gpu_session");
  const std::string checkpoint = folder.at("checkpoint");
  Perceptron eager;
  trainOnGpu(eager, 5);
  {
    Perceptron first;
    const Step step = captureOnGpu(first);
    Runner runner = Runner::create(orThrow(plan(step, {.budget = budgetOf(step)})), step);
    torch::manual_seed(4);
    trainPlanned(runner, first, 0, 3);
    runner.save(checkpoint);
  }
  Perceptron second;
  const Step step = captureOnGpu(second);
  Runner runner = Runner::create(orThrow(plan(step, {.budget = budgetOf(step)})), step);
  torch::manual_seed(77);  // the checkpoint knows better
  EXPECT_EQ(runner.load(checkpoint).steps, 3);
  trainPlanned(runner, second, 3, 5);
  runner.storeTo(second.model);
  EXPECT_EQ(std::vector<float>(eager.losses.begin() + 3, eager.losses.end()), second.losses);
  expectSameValues(eager, second);
}

TEST_F(GpuSession, GoesOnWithTheSameBitsAfterItsMemoryWasReleased) {
  Perceptron eager;
  trainOnGpu(eager, 6);
  Perceptron planned;
  const Step step = captureOnGpu(planned);
  Runner runner = Runner::create(orThrow(plan(step, {.budget = budgetOf(step)})), step);
  torch::manual_seed(4);
  for (int i = 0; i < 6; ++i) {
    trainPlanned(runner, planned, i, i + 1);
    const std::optional<Bytes> outside = runner.internals().memoryOutside();
    runner.release();
    // What the process has less is the arena.
    const std::optional<Bytes> released = runner.internals().memoryOutside();
    if (outside && released) {
      EXPECT_LT(*released - *outside, 16_MiB);
    }
    EXPECT_EQ(failureOf([&] { trainPlanned(runner, planned, i, i + 1); }).code,
              ir::ErrorCode::kInvalidArgument);
    runner.restore();
  }
  runner.storeTo(planned.model);
  EXPECT_EQ(eager.losses, planned.losses);
  expectSameValues(eager, planned);
}

struct ClosureChange {
  const char* name;
  Tensor (*change)(Perceptron&, const Tensor& loss, const Tensor& y);
  int step;  // that does something else
};

class GpuClosures : public GpuSession, public testing::WithParamInterface<ClosureChange> {};

TEST_P(GpuClosures, ThatDoSomethingElseEndTheTrainingBeforeTheUpdate) {
  Perceptron eager;
  eager.change = GetParam().change;
  trainOnGpu(eager, GetParam().step);
  Perceptron planned;
  planned.change = GetParam().change;
  const Step step = captureOnGpu(planned);
  const Plan made = orThrow(plan(step, {.budget = budgetOf(step)}));
  Runner runner = Runner::create(made, step, {.checkEvery = 1});
  torch::manual_seed(4);
  trainPlanned(runner, planned, 0, GetParam().step);
  const Failed failed =
      failureOf([&] { trainPlanned(runner, planned, GetParam().step, GetParam().step + 1); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kPlanMismatch) << failed.text;
  expectSays(failed.text, {"was ended without its updates"});
  runner.storeTo(planned.model);
  EXPECT_EQ(eager.losses, planned.losses);
  expectSameValues(eager, planned);
}

INSTANTIATE_TEST_SUITE_P(
    Changes, GpuClosures,
    testing::Values(ClosureChange{"a_number",
                                  [](Perceptron& own, const Tensor& loss, const Tensor&) {
                                    return loss * (own.updates < 5 ? 1 : 2);
                                  },
                                  5},
                    ClosureChange{"a_branch_on_a_target",
                                  [](Perceptron&, const Tensor& loss, const Tensor& y) {
                                    return y.max().item<int64_t>() == kClasses - 1 ? loss * 2
                                                                                   : loss;
                                  },
                                  kStepOfLastClass}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(GpuSession, NamesWhatDoesNotFit) {
  Perceptron training;
  const Step step = captureOnGpu(training);
  expectSays(failureOf([&] { orThrow(plan(step, {.budget = 2_MiB})); }).text,
             {"no schedule fits 2.00 MiB", "expected a budget of at least"});
}

TEST_F(GpuSession, AModuleMayBeOnTheGpuAlready) {
  Perceptron training;
  training.model->to(at::kCUDA);
  const Step step = captureOnGpu(training);
  orThrow(plan(step, {.budget = 1_GiB}));
}

}  // namespace
}  // namespace stowage::tests
