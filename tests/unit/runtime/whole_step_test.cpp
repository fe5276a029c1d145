// SPDX-License-Identifier: Apache-2.0
//
// A step as one function, which finds its update itself: the same bits as plain libtorch, what its
// host code may ask, and what it may not.

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace stowage::tests {
namespace {

using at::Tensor;

struct WholeStep {
  explicit WholeStep(std::function<Tensor(const Tensor&)> scaleOf) : scale(std::move(scaleOf)) {
    torch::manual_seed(1);
    model = torch::nn::Linear(8, 4);
    optimizer = std::make_unique<torch::optim::AdamW>(model->parameters(), 0.1);
  }

  runtime::StepFunctions functions() {
    runtime::StepFunctions step;
    step.whole = [this](const std::vector<Tensor>& inputs, const runtime::NoteUpdate& note) {
      Tensor loss = (model(inputs[0]) * scale(inputs[0])).square().mean();
      loss.backward();
      note();
      optimizer->step();
      optimizer->zero_grad();
      if (after) after(loss);
      return std::vector<Tensor>{loss.detach()};
    };
    step.module = model.ptr();
    step.optimizer = optimizer.get();
    step.hostState = HostState::kDeclared;
    step.inputValues = [this] { return std::vector<Tensor>{batch}; };
    step.noteAssumption = [this](double value) { assumed.push_back(value); };
    return step;
  }

  ir::Expected<Step> capture() {
    batch = batchOf(0);
    detail::AnyStep step;
    step.functions = functions();
    step.device = "cpu";
    return detail::tryCapture(std::move(step), {batch});
  }

  static Tensor batchOf(int64_t step) {
    torch::manual_seed(100 + static_cast<uint64_t>(step));
    return at::randn({4, 8}).abs() + 0.1;
  }

  std::function<Tensor(const Tensor&)> scale;
  std::function<void(const Tensor&)> after;
  torch::nn::Linear model{nullptr};
  std::unique_ptr<torch::optim::AdamW> optimizer;
  Tensor batch;
  std::vector<double> assumed;
};

Tensor one(const Tensor& x) { return x.new_ones({}); }

std::string textOf(ir::Expected<Step> step) {
  return step ? "captured" : ir::describe(step.takeError());
}

/// Losses of planned steps, the last one perhaps an error.
std::vector<double> train(WholeStep& program, Step& step, const std::vector<Tensor>& batches,
                          std::string& error) {
  ir::Expected<Plan> planned = plan(step, {.budget = percentOfPeak(80)});
  if (!planned) {
    error = ir::describe(planned.takeError());
    return {};
  }
  Runner runner = Runner::create(*planned, step);
  std::vector<double> losses;
  for (const Tensor& batch : batches) {
    program.batch = batch;
    ir::Expected<std::vector<Tensor>> reports = runner.internals().step({batch});
    if (!reports) {
      error = ir::describe(reports.takeError());
      break;
    }
    losses.push_back(reports->front().item<double>());
  }
  runner.storeTo(program.model);
  return losses;
}

TEST(WholeStep, TrainsLikePlainLibtorch) {
  std::vector<Tensor> batches;
  for (int64_t i = 0; i < 5; ++i) batches.push_back(WholeStep::batchOf(i));
  WholeStep eager(one), planned(one);
  std::vector<double> expected;
  for (const Tensor& batch : batches) {
    expected.push_back(eager.functions().whole({batch}, [] {}).front().item<double>());
  }
  ir::Expected<Step> step = planned.capture();
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  std::string error;
  EXPECT_EQ(train(planned, *step, batches, error), expected);
  EXPECT_EQ(error, "");
  EXPECT_TRUE(at::equal(eager.model->weight, planned.model->weight));
}

TEST(WholeStep, OfWhichNothingIsAnUpdateIsRefused) {
  WholeStep program(one);
  detail::AnyStep step;
  step.functions = program.functions();
  step.functions.whole = [&](const std::vector<Tensor>& inputs, const runtime::NoteUpdate&) {
    Tensor loss = program.model(inputs[0]).sum();
    loss.backward();
    return std::vector<Tensor>{loss};
  };
  step.device = "cpu";
  const std::string text = textOf(detail::tryCapture(std::move(step), {WholeStep::batchOf(0)}));
  EXPECT_NE(text.find("never calls step()"), std::string::npos) << text;
}

TEST(WholeStep, MayAskAboutItsInputs) {
  WholeStep program([](const Tensor& x) {
    const bool allPositive = (x > 0).all().item<bool>();
    return allPositive ? x.new_full({}, 2.0) : x.mean();
  });
  ir::Expected<Step> step = program.capture();
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  ASSERT_FALSE(program.assumed.empty());
  EXPECT_EQ(program.assumed.front(), 1.0);
  std::string error;
  // The third batch is another step.
  const std::vector<double> losses =
      train(program, *step, {WholeStep::batchOf(0), WholeStep::batchOf(1), -WholeStep::batchOf(2)},
            error);
  EXPECT_EQ(losses.size(), 2U);
  EXPECT_NE(error.find("not the same each time"), std::string::npos) << error;
}

TEST(WholeStep, MayNotAskAboutItsParameters) {
  WholeStep program(one);
  program.scale = [&](const Tensor& x) {
    return program.model->weight.sum().item<double>() > 0 ? x.new_full({}, 2.0) : x.mean();
  };
  const std::string text = textOf(program.capture());
  EXPECT_NE(text.find("reads a value with item()"), std::string::npos) << text;
}

TEST(WholeStep, MayReadItsLossAfterTheUpdate) {
  std::vector<double> read;
  WholeStep program(one);
  program.after = [&](const Tensor& loss) { read.push_back(loss.item<double>()); };
  ir::Expected<Step> step = program.capture();
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  read.clear();
  std::string error;
  const std::vector<double> losses =
      train(program, *step, {WholeStep::batchOf(0), WholeStep::batchOf(1)}, error);
  EXPECT_EQ(error, "");
  EXPECT_EQ(read, losses);
}

TEST(WholeStep, MayNotReadWhatItsUpdateMakes) {
  WholeStep program(one);
  program.after = [&](const Tensor&) {
    static_cast<void>(program.model->weight.sum().item<double>());
  };
  const std::string text = textOf(program.capture());
  EXPECT_NE(text.find("its update makes"), std::string::npos) << text;
}

/// What a model with LayerDrop asks at a rate of 0.
TEST(WholeStep, KnowsThatNoDrawIsBelowZero) {
  WholeStep program([](const Tensor& x) {
    const bool skips = (at::rand({}) < 0.0).item<bool>();
    const bool stays = (at::rand({}) < 1.0).item<bool>();
    return x.new_full({}, skips || !stays ? 3.0 : 2.0);
  });
  EXPECT_EQ(textOf(program.capture()), "captured");
}

TEST(WholeStep, DoesNotKnowADrawBetween) {
  WholeStep program([](const Tensor& x) {
    return (at::rand({}) < 0.5).item<bool>() ? x.new_full({}, 2.0) : x.mean();
  });
  EXPECT_NE(textOf(program.capture()), "captured");
}

/// Answers of kernels without data are kept by shape; the numbers that decide one are in the key.
TEST(WholeStep, AFactoryIsAskedAgainForOtherNumbers) {
  WholeStep program([](const Tensor& x) {
    const int64_t four = at::arange(0.0, 2.0, 0.5).size(0);
    const int64_t six = at::arange(0.0, 3.0, 0.5).size(0);
    TORCH_CHECK(four == 4 && six == 6, "found ", four, " and ", six);
    TORCH_CHECK(x.t().size(0) == 8 && x.t().t().size(0) == 4 && x.select(0, 1).size(0) == 8);
    return x.new_ones({});
  });
  EXPECT_EQ(textOf(program.capture()), "captured");
}

}  // namespace
}  // namespace stowage::tests
