// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/adamw.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/serialize.h>

#include <sstream>

#include "tests/support/dispatch_spy.h"

namespace stowage {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Parameters of odd, empty and larger sizes with the same values on each call.
Tensors makeParameters(c10::ScalarType dtype = at::kFloat) {
  at::Generator generator = at::detail::createCPUGenerator(7);
  Tensors parameters;
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{33, 7}, {129}, {0}, {}, {64, 64}}) {
    parameters.push_back(at::randn(sizes, generator, at::kFloat).to(dtype).requires_grad_(true));
  }
  return parameters;
}

void setGradients(const Tensors& parameters, uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for (at::Tensor parameter : parameters) {
    parameter.mutable_grad() =
        at::randn(parameter.sizes(), generator, at::kFloat).to(parameter.scalar_type());
  }
}

void runSteps(torch::optim::Optimizer& optimizer, const Tensors& parameters, uint64_t first,
              uint64_t count) {
  for (uint64_t i = first; i < first + count; ++i) {
    setGradients(parameters, 100 + i);
    optimizer.step();
  }
}

void expectSameBits(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].scalar_type(), b[i].scalar_type());
    EXPECT_TRUE(at::equal(a[i], b[i])) << "tensor " << i;
  }
}

const AdamWParamState& stateOf(AdamW& optimizer, const at::Tensor& parameter) {
  return static_cast<const AdamWParamState&>(
      *optimizer.state().at(parameter.unsafeGetTensorImpl()));
}

AdamWOptions testOptions() { return AdamWOptions(0.01).weight_decay(0.1).betas({0.9, 0.95}); }

/// What the optimizer should do, said once more with one list and no classes.
struct Reference {
  Tensors parameters, firstMoments, secondMoments, steps;
  at::Tensor lr = at::full({}, 0.01, at::kFloat);

  explicit Reference(Tensors values) : parameters(std::move(values)) {
    for (const at::Tensor& parameter : parameters) {
      firstMoments.push_back(at::zeros_like(parameter));
      secondMoments.push_back(at::zeros_like(parameter));
      steps.push_back(at::zeros({}, at::kFloat));
    }
  }
  void step(const Tensors& gradients) {
    const at::NoGradGuard guard;
    for (const at::Tensor& count : steps) count.add_(1);
    at::_fused_adamw_(parameters, gradients, firstMoments, secondMoments, {}, steps, lr, 0.9, 0.95,
                      0.1, 1e-8, false, false);
  }
};

Tensors gradientsOf(const Tensors& parameters) {
  Tensors gradients;
  for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
  return gradients;
}

class AdamWBits : public ::testing::TestWithParam<std::pair<c10::ScalarType, int64_t>> {};

TEST_P(AdamWBits, EqualTheFusedKernelWhateverTheBuckets) {
  const auto [dtype, bucketBytes] = GetParam();
  const Tensors parameters = makeParameters(dtype);
  AdamW optimizer(parameters, testOptions().bucket_bytes(bucketBytes));
  Reference reference(makeParameters(dtype));
  for (uint64_t i = 0; i < 5; ++i) {
    runSteps(optimizer, parameters, i, 1);
    reference.step(gradientsOf(parameters));
  }
  expectSameBits(parameters, reference.parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const AdamWParamState& state = stateOf(optimizer, parameters[i]);
    expectSameBits({state.exp_avg(), state.exp_avg_sq(), state.step()},
                   {reference.firstMoments[i], reference.secondMoments[i], reference.steps[i]});
  }
}

INSTANTIATE_TEST_SUITE_P(DtypesAndBuckets, AdamWBits,
                         ::testing::Values(std::pair(at::kFloat, int64_t{64} << 20),
                                           std::pair(at::kFloat, int64_t{1000}),
                                           std::pair(at::kFloat, int64_t{1}),
                                           std::pair(at::kBFloat16, int64_t{64} << 20),
                                           std::pair(at::kBFloat16, int64_t{1000})));

TEST(AdamWTest, AgreesWithTorchToAMillionthOverFiveStepsOfASchedule) {
  const Tensors ours = makeParameters(), theirs = makeParameters();
  AdamW optimizer(ours, testOptions());
  torch::optim::AdamW reference(
      theirs, torch::optim::AdamWOptions(0.01).weight_decay(0.1).betas({0.9, 0.95}));
  torch::optim::StepLR schedule(optimizer, 1, 0.5), referenceSchedule(reference, 1, 0.5);
  for (uint64_t i = 0; i < 5; ++i) {
    runSteps(optimizer, ours, i, 1);
    schedule.step();
    runSteps(reference, theirs, i, 1);
    referenceSchedule.step();
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(at::allclose(ours[i], theirs[i], /*rtol=*/1e-6, /*atol=*/1e-6)) << i;
    EXPECT_EQ(at::equal(ours[i], makeParameters()[i]), ours[i].numel() == 0) << i;
  }
}

TEST(AdamWTest, MastersAreWhatFloatTrainingGivesAndParametersTheirRounding) {
  const Tensors parameters = makeParameters(at::kBFloat16);
  AdamW optimizer(parameters, testOptions().master_weights(true));
  Tensors wide;
  for (const at::Tensor& parameter : parameters) wide.push_back(parameter.detach().to(at::kFloat));
  Reference reference(wide);
  for (uint64_t i = 0; i < 5; ++i) {
    runSteps(optimizer, parameters, i, 1);
    Tensors gradients;
    for (const at::Tensor& g : gradientsOf(parameters)) gradients.push_back(g.to(at::kFloat));
    reference.step(gradients);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const AdamWParamState& state = stateOf(optimizer, parameters[i]);
    expectSameBits({state.master(), state.exp_avg()}, {wide[i], reference.firstMoments[i]});
    expectSameBits({parameters[i].detach()}, {wide[i].to(at::kBFloat16)});
  }
}

TEST(AdamWTest, MastersKeepStepsThatTheParameterIsTooCoarseFor) {
  const auto train = [](bool masters) {
    const at::Tensor parameter =
        at::ones({1}, at::kBFloat16).requires_grad_(true);  // next below: 1 - 2^-8
    AdamW optimizer({parameter}, AdamWOptions(5e-4).weight_decay(0).master_weights(masters));
    for (int i = 0; i < 20; ++i) {
      at::Tensor(parameter).mutable_grad() = at::ones({1}, at::kBFloat16);
      optimizer.step();
    }
    return parameter.item<float>();
  };
  EXPECT_EQ(train(false), 1.0F);
  EXPECT_NEAR(train(true), 0.99F, 0.002F);
}

TEST(AdamWTest, FloatParametersAreTheirOwnMasters) {
  const Tensors parameters = makeParameters(), others = makeParameters();
  AdamW optimizer(parameters, testOptions().master_weights(true)), plain(others, testOptions());
  runSteps(optimizer, parameters, 0, 3);
  runSteps(plain, others, 0, 3);
  EXPECT_FALSE(stateOf(optimizer, parameters[0]).master().defined());
  expectSameBits(parameters, others);
}

TEST(AdamWTest, StateMayBeWiderThanTheParameter) {
  const Tensors parameters = makeParameters(at::kBFloat16);
  AdamW optimizer(parameters, testOptions().state_dtype(at::kFloat));
  runSteps(optimizer, parameters, 0, 3);
  EXPECT_EQ(stateOf(optimizer, parameters[0]).exp_avg().scalar_type(), at::kFloat);
  EXPECT_FALSE(stateOf(optimizer, parameters[0]).master().defined());
  EXPECT_EQ(parameters[0].scalar_type(), at::kBFloat16);
  EXPECT_FALSE(at::equal(parameters[0], makeParameters(at::kBFloat16)[0]));
}

TEST(AdamWTest, ParametersWithoutGradientStayAndCountNoStep) {
  const Tensors parameters = makeParameters();
  AdamW optimizer(parameters, testOptions());
  runSteps(optimizer, parameters, 0, 1);
  setGradients(parameters, 1);
  at::Tensor(parameters[1]).mutable_grad().reset();
  const at::Tensor before = parameters[1].detach().clone();
  optimizer.step();
  EXPECT_TRUE(at::equal(parameters[1], before));
  EXPECT_EQ(stateOf(optimizer, parameters[1]).step().item<float>(), 1);
  EXPECT_EQ(stateOf(optimizer, parameters[0]).step().item<float>(), 2);
}

TEST(AdamWTest, DtypesMixedInAGroupGetListsOfTheirOwn) {
  Tensors mixed = makeParameters(), separate = makeParameters();
  const Tensors narrow = makeParameters(at::kBFloat16), narrowToo = makeParameters(at::kBFloat16);
  AdamW floats(separate, testOptions()), halves(narrowToo, testOptions());
  Tensors all;
  for (size_t i = 0; i < mixed.size(); ++i) {
    all.push_back(mixed[i]);
    all.push_back(narrow[i]);
  }
  AdamW both(all, testOptions());
  for (uint64_t i = 0; i < 3; ++i) {
    setGradients(mixed, i);
    setGradients(narrow, i);
    std::vector<std::string> log;
    {
      const tests::SpyGuard guard(tests::logInto(log));
      both.step();
    }
    EXPECT_EQ(std::count_if(
                  log.begin(), log.end(),
                  [](const std::string& line) { return line.starts_with("aten::_fused_adamw_"); }),
              2);
    setGradients(separate, i);
    setGradients(narrowToo, i);
    floats.step();
    halves.step();
  }
  expectSameBits(mixed, separate);
  expectSameBits(narrow, narrowToo);
}

std::vector<std::string> logOfStep(AdamW& optimizer, const Tensors& parameters, uint64_t seed) {
  setGradients(parameters, seed);
  std::vector<std::string> log;
  const tests::SpyGuard guard(tests::logInto(log));
  optimizer.step();
  return log;
}

TEST(AdamWTest, PassesTheSameNumbersInEveryStepAndReadsNothingBack) {
  const Tensors parameters = makeParameters(at::kBFloat16);
  AdamW optimizer(parameters, testOptions().master_weights(true));
  logOfStep(optimizer, parameters, 1);  // makes the state
  const std::vector<std::string> second = logOfStep(optimizer, parameters, 2);
  EXPECT_EQ(second, logOfStep(optimizer, parameters, 3));
  for (const std::string& line : second) EXPECT_EQ(line.find("item"), std::string::npos) << line;
  EXPECT_EQ(second.front().substr(0, 8), "aten::to");
  EXPECT_EQ(second.back().substr(0, 20), "aten::_foreach_copy_");
}

TEST(AdamWTest, WritesTheLearningRateOnlyWhenItChanged) {
  const Tensors parameters = makeParameters();
  AdamW optimizer(parameters, testOptions());
  logOfStep(optimizer, parameters, 1);
  const std::vector<std::string> same = logOfStep(optimizer, parameters, 2);
  optimizer.param_groups()[0].options().set_lr(0.5);
  std::vector<std::string> changed = logOfStep(optimizer, parameters, 3);
  ASSERT_EQ(changed.size(), same.size() + 1);
  EXPECT_EQ(changed.front(), "aten::fill_.Scalar 0.5");
  EXPECT_EQ(logOfStep(optimizer, parameters, 4), same);
}

TEST(AdamWTest, WritesTheLearningRateInEveryStepIfAsked) {
  const Tensors parameters = makeParameters();
  AdamW optimizer(parameters, testOptions().lr_every_step(true));
  logOfStep(optimizer, parameters, 1);
  const std::vector<std::string> same = logOfStep(optimizer, parameters, 2);
  EXPECT_EQ(same.front(), "aten::fill_.Scalar 0.01");
  EXPECT_EQ(logOfStep(optimizer, parameters, 3), same);
}

TEST(AdamWTest, GroupsKeepTheirOwnOptions) {
  const Tensors parameters = makeParameters(), others = makeParameters();
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(Tensors{parameters[0]});
  groups.emplace_back(Tensors{parameters[1]}, std::make_unique<AdamWOptions>(0.5));
  AdamW optimizer(groups, testOptions());
  AdamW first({others[0]}, testOptions()), second({others[1]}, AdamWOptions(0.5));
  runSteps(optimizer, parameters, 0, 3);
  runSteps(first, others, 0, 3);
  runSteps(second, others, 0, 3);
  expectSameBits({parameters[0], parameters[1]}, {others[0], others[1]});
}

TEST(AdamWTest, GroupsThatAreAddedKeepTheirOwnOptions) {
  const Tensors parameters = makeParameters(), others = makeParameters();
  AdamW optimizer({parameters[0]}, testOptions());
  optimizer.add_param_group({Tensors{parameters[1]}, std::make_unique<AdamWOptions>(0.5)});
  AdamW second({others[1]}, AdamWOptions(0.5));
  runSteps(optimizer, parameters, 0, 3);
  runSteps(second, others, 0, 3);
  expectSameBits({parameters[1]}, {others[1]});
  EXPECT_ANY_THROW(optimizer.add_param_group(
      {Tensors{others[0]}, std::make_unique<AdamWOptions>(AdamWOptions(0.1).eps(-1))}));
}

class AdamWSaving : public ::testing::TestWithParam<c10::ScalarType> {};

TEST_P(AdamWSaving, GoesOnWithTheSameBits) {
  const AdamWOptions options = testOptions().master_weights(true);
  const Tensors parameters = makeParameters(GetParam());
  AdamW optimizer(parameters, options);
  runSteps(optimizer, parameters, 0, 3);
  optimizer.param_groups()[0].options().set_lr(0.003);
  std::stringstream file;
  torch::save(optimizer, file);

  Tensors copies;
  for (const at::Tensor& parameter : parameters) {
    copies.push_back(parameter.detach().clone().requires_grad_(true));
  }
  AdamW restored(copies, AdamWOptions(1.0));
  torch::load(restored, file);
  runSteps(optimizer, parameters, 3, 3);
  runSteps(restored, copies, 3, 3);
  expectSameBits(parameters, copies);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, AdamWSaving, ::testing::Values(at::kFloat, at::kBFloat16));

TEST(AdamWTest, ClosureRunsWithGradientsAndItsLossComesBack) {
  const Tensors parameters = makeParameters();
  AdamW optimizer(parameters, testOptions());
  const at::NoGradGuard guard;
  const at::Tensor loss = optimizer.step([&] {
    at::Tensor sum = parameters[0].square().sum();
    sum.backward();
    return sum;
  });
  EXPECT_TRUE(loss.requires_grad());
  EXPECT_FALSE(at::equal(parameters[0], makeParameters()[0]));
}

TEST(AdamWTest, RefusesWhatItCannotDo) {
  const auto make = [](const AdamWOptions& options) { AdamW(makeParameters(), options); };
  EXPECT_THROW(make(AdamWOptions(-1)), c10::Error);
  EXPECT_THROW(make(AdamWOptions().betas({0.9, 1.0})), c10::Error);
  EXPECT_THROW(make(AdamWOptions().eps(-1)), c10::Error);
  EXPECT_THROW(make(AdamWOptions().weight_decay(-1)), c10::Error);
  EXPECT_THROW(make(AdamWOptions().bucket_bytes(0)), c10::Error);
  EXPECT_THROW(make(AdamWOptions().master_weights(true).state_dtype(at::kBFloat16)), c10::Error);
  const Tensors parameters = makeParameters();
  AdamW narrow(parameters, AdamWOptions().state_dtype(at::kBFloat16));
  setGradients(parameters, 1);
  EXPECT_THROW(narrow.step(), c10::Error);
}

}  // namespace
}  // namespace stowage
