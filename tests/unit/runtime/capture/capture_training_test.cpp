// SPDX-License-Identifier: Apache-2.0
//
// Whole steps: small models with real optimizers, captured on the CPU, then run node by node and
// compared with plain eager training, bit for bit. A frozen scalar, a wrong first value, a wrong
// layout or a lost write shows as another bit.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "ir/text/printer.h"
#include "runtime/capture/capture.h"
#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/capture/graph/without_memory.h"
#include "tests/support/captured_run.h"

namespace stowage::runtime {
namespace {

namespace F = torch::nn::functional;
using tests::CapturedRun;

ir::Target cpuTarget() {
  ir::Target target;
  target.profile = "cpu";
  return target;
}

/// A model, its optimizer and scheduler, and the closures of its step.
struct Training {
  std::shared_ptr<torch::nn::Module> module;
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  std::shared_ptr<torch::optim::LRScheduler> scheduler;
  StepFunctions functions;
};

using MakeOptimizer =
    std::function<std::shared_ptr<torch::optim::Optimizer>(std::vector<at::Tensor> parameters)>;

std::shared_ptr<torch::optim::Optimizer> adamW(std::vector<at::Tensor> parameters) {
  return std::make_shared<torch::optim::AdamW>(std::move(parameters), 1e-2);
}

std::shared_ptr<torch::optim::Optimizer> momentum(std::vector<at::Tensor> parameters) {
  return std::make_shared<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(1e-2).momentum(0.9));
}

struct Recipe {
  MakeOptimizer makeOptimizer = adamW;
  double dropout = 0.1;
  bool clips = true;
  bool dropsGradients = true;
  bool draws = false;  // rows and noise are drawn in the step
};

/// Rows of `x` in random order with noise: every kind of draw that is no dropout.
at::Tensor withDraws(const at::Tensor& x) {
  const at::Tensor picked = at::multinomial(x.detach().abs() + 0.1, 2);
  const at::Tensor noise = at::poisson(at::ones_like(x)) * 0.1;
  const at::Tensor rows = x.index_select(0, at::randperm(x.size(0), at::kLong));
  return at::rrelu(rows + noise, 0.1, 0.3, true) + x.gather(1, picked).mean();
}

Training makeTraining(const Recipe& recipe) {
  torch::nn::Sequential model(torch::nn::Linear(8, 16), torch::nn::GELU(),
                              torch::nn::Dropout(recipe.dropout), torch::nn::Linear(16, 4));
  Training training;
  training.module = model.ptr();
  training.optimizer = recipe.makeOptimizer(model->parameters());
  training.scheduler = std::make_shared<torch::optim::StepLR>(*training.optimizer, 1, 0.9);
  training.functions.module = training.module;
  training.functions.optimizer = training.optimizer.get();
  training.functions.loss = [model, recipe](const std::vector<at::Tensor>& inputs) mutable {
    const at::Tensor x = recipe.draws ? withDraws(inputs[0]) : inputs[0];
    const at::Tensor loss = F::cross_entropy(model->forward(x), inputs[1]);
    loss.backward();
    return std::vector<at::Tensor>{loss};
  };
  training.functions.update = [model, recipe, optimizer = training.optimizer,
                               scheduler = training.scheduler] {
    if (recipe.clips) torch::nn::utils::clip_grad_norm_(model->parameters(), 0.5);
    optimizer->step();
    optimizer->zero_grad(recipe.dropsGradients);
    scheduler->step();
  };
  return training;
}

std::vector<InputSpec> specs() { return {{"x", {3, 8}, torch::kFloat}, {"y", {3}, torch::kLong}}; }

std::vector<at::Tensor> makeBatch(int step) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(100 + step));
  return {torch::randn({3, 8}, generator), torch::randint(0, 4, {3}, generator)};
}

bool sameBytes(const at::Tensor& a, const at::Tensor& bytes) {
  const at::Tensor dense = a.contiguous();
  return dense.nbytes() == bytes.nbytes() &&
         std::memcmp(dense.const_data_ptr(), bytes.const_data_ptr(), dense.nbytes()) == 0;
}

/// Trains `steps` steps eagerly and as captured, from one seed; everything must be equal.
void expectSameTraining(const Recipe& recipe, int steps) {
  torch::manual_seed(7);
  Training eager = makeTraining(recipe);
  std::vector<at::Tensor> losses;
  for (int i = 0; i < steps; ++i) {
    losses.push_back(eager.functions.loss(makeBatch(i)).front().detach().clone());
    eager.functions.update();
  }
  torch::manual_seed(7);
  Training captured = makeTraining(recipe);
  auto step = captureStep(captured.functions, specs(), {.target = cpuTarget()});
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  CapturedRun run(**step);
  ir::Error loaded = run.load();
  ASSERT_FALSE(static_cast<bool>(loaded)) << ir::describe(std::move(loaded));
  for (int i = 0; i < steps; ++i) {
    auto reports = run.step(makeBatch(i));
    ASSERT_TRUE(static_cast<bool>(reports)) << ir::describe(reports.takeError());
    EXPECT_TRUE(sameBytes(losses[static_cast<size_t>(i)], reports->front())) << "loss " << i;
  }
  for (const auto& parameter : eager.module->named_parameters()) {
    EXPECT_TRUE(sameBytes(parameter.value(), run.bytes(parameter.key()))) << parameter.key();
  }
}

TEST(CaptureTraining, NamesStoragesByWhatTheyAre) {
  Training training = makeTraining({});
  auto step = captureStep(training.functions, specs(), {.target = cpuTarget()});
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  const std::string text = ir::toText((*step)->graph());
  for (const char* expected :
       {"input %x : f32[3,8]", "parameter %0.weight : f32[16,8]", "\"m(0.weight)\" : f32[16,8]",
        "\"grad(3.bias)\" gradient", "\"0/gelu.0\"",
        "%nll_loss_forward.0 activation output : f32[]", "backward \"3\":", "optimizer \"0\":"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << " in\n" << text;
  }
}

TEST(CaptureTraining, AdamWWithScheduleClippingAndDropoutEqualsEager) { expectSameTraining({}, 6); }

TEST(CaptureTraining, DrawsOfEveryKindEqualEager) { expectSameTraining({.draws = true}, 4); }

TEST(CaptureTraining, MomentumEqualsEagerFromTheFirstStep) {
  expectSameTraining({.makeOptimizer = momentum, .clips = false}, 6);
}

TEST(CaptureTraining, KeptGradientsEqualEager) {
  expectSameTraining({.clips = false, .dropsGradients = false}, 6);
}

TEST(CaptureTraining, PutsTheModuleBackWhenItIsDestroyed) {
  Training training = makeTraining({});
  const at::Tensor before = training.module->parameters().front().detach().clone();
  {
    auto step = captureStep(training.functions, specs(), {.target = cpuTarget()});
    ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
    EXPECT_THROW(training.module->parameters().front().data_ptr(), c10::Error);
  }
  EXPECT_TRUE(torch::equal(before, training.module->parameters().front()));
}

TEST(CaptureTraining, HonoursARateSetByHandWhenHostStateIsDeclared) {
  const auto trainEagerly = [] {
    torch::manual_seed(3);
    Training training = makeTraining({});
    for (int i = 0; i < 6; ++i) {
      if (i == 3) training.optimizer->param_groups()[0].options().set_lr(0.5);
      training.functions.loss(makeBatch(i));
      training.functions.update();
    }
    return training.module->parameters().front().detach().clone();
  };
  const at::Tensor expected = trainEagerly();
  torch::manual_seed(3);
  Training training = makeTraining({});
  training.functions.hostState = HostState::kDeclared;
  training.functions.schedulers = {training.scheduler.get()};
  auto step = captureStep(training.functions, specs(), {.target = cpuTarget()});
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  CapturedRun run(**step);
  ASSERT_FALSE(static_cast<bool>(run.load()));
  for (int i = 0; i < 6; ++i) {
    if (i == 3) training.optimizer->param_groups()[0].options().set_lr(0.5);
    auto reports = run.step(makeBatch(i));
    ASSERT_TRUE(static_cast<bool>(reports)) << ir::describe(reports.takeError());
  }
  EXPECT_TRUE(sameBytes(expected, run.bytes("0.weight")));
}

TEST(CaptureTraining, RefusesARateSetByHandWhereAHiddenSchedulerChangesIt) {
  Training training = makeTraining({});
  auto step = captureStep(training.functions, specs(), {.target = cpuTarget()});
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  training.optimizer->param_groups()[0].options().set_lr(0.5);
  // The scheduler's first step leaves the rate alone.
  ASSERT_TRUE(static_cast<bool>((*step)->nextScalars({})));
  auto scalars = (*step)->nextScalars({});
  ASSERT_FALSE(static_cast<bool>(scalars));
  EXPECT_NE(ir::describe(scalars.takeError()).find("changed by hand"), std::string::npos);
  // Refused, the step was not taken: set back, it has its numbers.
  training.optimizer->param_groups()[0].options().set_lr(1e-2);
  Training other = makeTraining({});
  auto untouched = captureStep(other.functions, specs(), {.target = cpuTarget()});
  ASSERT_TRUE(static_cast<bool>(untouched)) << ir::describe(untouched.takeError());
  ASSERT_TRUE(static_cast<bool>((*untouched)->nextScalars({})));
  auto expected = (*untouched)->nextScalars({}), again = (*step)->nextScalars({});
  ASSERT_TRUE(static_cast<bool>(expected) && static_cast<bool>(again));
  for (size_t i = 0; i < expected->size(); ++i) EXPECT_EQ((*again)[i].value, (*expected)[i].value);
}

TEST(CaptureTraining, BuildsAModelWithoutMemoryThatReplaysToTheSameBits) {
  torch::manual_seed(11);
  const Training eager = makeTraining({});
  torch::manual_seed(11);
  Training training;
  {
    const WithoutMemory withoutMemory;
    training = makeTraining({});
  }
  auto step = captureStep(training.functions, specs(), {.target = cpuTarget()});
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  torch::manual_seed(5);  // replay starts from the state that construction had
  CapturedRun run(**step);
  ir::Error loaded = run.load();
  ASSERT_FALSE(static_cast<bool>(loaded)) << ir::describe(std::move(loaded));
  for (const auto& parameter : eager.module->named_parameters()) {
    EXPECT_TRUE(sameBytes(parameter.value(), run.bytes(parameter.key()))) << parameter.key();
  }
}

TEST(CaptureTraining, AWriteIntoAnyPageOfAVastTensorIsSeen) {
  constexpr int64_t kBytes = (int64_t{3} << 30) + 4096;
  const c10::Storage storage = makeFakeStorage(kBytes, c10::Device(c10::kCPU), true);
  const c10::StorageImpl& fake = *storage.unsafeGetStorageImpl();
  EXPECT_FALSE(wasTouched(fake));
  static_cast<char*>(storage.mutable_data())[kBytes - 1] = 1;
  EXPECT_TRUE(wasTouched(fake));
}

}  // namespace
}  // namespace stowage::runtime
