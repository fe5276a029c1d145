// SPDX-License-Identifier: Apache-2.0
//
// The closures checked against the plan: whatever they do otherwise than when they were captured
// ends the training before the update, with the state of the step before; or the plan follows.

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/schedulers/step_lr.h>

#include <functional>
#include <memory>

#include "tests/support/trained_twice.h"

namespace stowage::tests {
namespace {

/// A Training with host numbers beside it.
struct Numbered : Training {
  int updates = 0;    // made by `update`
  double ofLoop = 1;  // set by the loop
  Tensor weight = at::full({}, 0.5);
};
using Scale = std::function<Tensor(Numbered&, const Tensor& loss)>;

struct NumberedOptions {
  Scale scale = [](Numbered&, const Tensor& loss) { return loss; };
  std::function<void(Numbered&, int i)> before = [](Numbered&, int) {};
  LossNumbers lossNumbers = LossNumbers::kCaptured;
  bool declared = false;
};

MakeProgram numbered(NumberedOptions options) {
  return [options] {
    const auto training = std::make_shared<Numbered>();
    Program program;
    program.module = training->model.ptr();
    program.optimizers = training->optimizer.get();
    program.loss = [options, own = training.get()](const Tensor& x, const Tensor& y) {
      const Tensor loss = options.scale(*own, own->forward(x, y));
      loss.backward();
      return loss;
    };
    program.update = [own = training.get()] {
      own->update();
      ++own->updates;
    };
    program.before = [options, own = training.get()](int i) { options.before(*own, i); };
    program.lossNumbers = options.lossNumbers;
    if (options.declared || options.lossNumbers == LossNumbers::kEachStep) {
      program.hostState = HostState::kDeclared;
      program.rewind = [own = training.get()] { own->updates = 0; };
    }
    program.owned = training;
    return program;
  };
}

struct LateChange {
  const char* name;
  Scale scale;
  int stepsBefore;  // done before the one that is refused
  std::vector<std::string> says;
};

/// What changes within six updates, as `update` leaves it for `loss`.
const LateChange kLateChanges[] = {
    {"a_weight_that_joins_late",
     [](Numbered& own, const Tensor& loss) { return loss * (own.updates < 6 ? 1 : 2); },
     6,
     {"aten.mul.", "is 2 now and was 1", "LossNumbers::kEachStep", "an input of the step",
      "step 7 was ended without its updates"}},
    {"a_weight_that_warms_up_late",
     [](Numbered& own, const Tensor& loss) { return loss * (std::max(0, own.updates - 5) / 10.); },
     6,
     {"is 0.1 now and was 0"}},
};

class LateNumber : public testing::TestWithParam<LateChange> {};

TEST_P(LateNumber, IsRefusedInItsStepWithTheStateOfTheStepBefore) {
  const Trained trained = trainTwice(numbered({.scale = GetParam().scale}));
  EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(trained.steps, GetParam().stepsBefore);
  expectSays(trained.refusal.text, GetParam().says);
  EXPECT_EQ(trained.difference, "");
}

TEST_P(LateNumber, IsFollowedWhereNumbersAreTakenInEachStep) {
  const Trained trained =
      trainTwice(numbered({.scale = GetParam().scale, .lossNumbers = LossNumbers::kEachStep}));
  EXPECT_EQ(trained.refusal.text, "");
  EXPECT_EQ(trained.steps, 12);
  EXPECT_EQ(trained.difference, "");
}

// The control: what these tests look for is there to be found.
TEST_P(LateNumber, GivesOtherBitsWhereNoStepIsChecked) {
  const Trained trained =
      trainTwice(numbered({.scale = GetParam().scale}), {.run = {.checkEvery = 0}});
  EXPECT_EQ(trained.refusal.text, "");
  EXPECT_NE(trained.difference, "");
}

INSTANTIATE_TEST_SUITE_P(Numbers, LateNumber, testing::ValuesIn(kLateChanges),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ClosureCheck, NumbersInEachStepWantADeclaredHostState) {
  Training training;
  Description description = training.describe();
  description.lossNumbers = LossNumbers::kEachStep;
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
  expectSays(failed.text, {"HostState::kDeclared", "`rewind`", "`schedulers`"});
}

TEST(ClosureCheck, NumbersThatTheLoopSetsFromTheFirstStepOnAreFollowed) {
  const Trained trained = trainTwice(
      numbered({.scale = [](Numbered& own, const Tensor& loss) { return loss * own.ofLoop; },
                .before = [](Numbered& own, int i) { own.ofLoop = 1 + 0.25 * i; },
                .lossNumbers = LossNumbers::kEachStep}));
  EXPECT_EQ(trained.refusal.text, "");
  EXPECT_EQ(trained.difference, "");
}

TEST(ClosureCheck, ADropoutRateThatIsSetLateIsRefusedOrFollowed) {
  const auto setRate = [](Numbered& own, int i) {
    if (i == 6) own.model->ptr<torch::nn::DropoutImpl>(2)->options.p(0.5);
  };
  const Trained refused = trainTwice(numbered({.before = setRate}));
  EXPECT_EQ(refused.steps, 6);
  expectSays(refused.refusal.text, {"another number than the plan", "is 0.5 now and was 0.8"});
  EXPECT_EQ(refused.difference, "");
  const Trained followed =
      trainTwice(numbered({.before = setRate, .lossNumbers = LossNumbers::kEachStep}));
  EXPECT_EQ(followed.refusal.text, "");
  EXPECT_EQ(followed.difference, "");
}

TEST(ClosureCheck, ANumberOfTheFirstStepAloneIsFollowed) {
  const Trained trained = trainTwice(numbered({.scale = [](Numbered& own, const Tensor& loss) {
    return loss * (own.updates == 0 ? 0.5 : 1);
  }}));
  EXPECT_EQ(trained.refusal.text, "");
  EXPECT_EQ(trained.difference, "");
}

MakeProgram changedByLoop(int step, bool declared) {
  return numbered({.scale = [](Numbered& own, const Tensor& loss) { return loss * own.ofLoop; },
                   .before = [step](Numbered& own, int i) { own.ofLoop = i < step ? 1 : 4; },
                   .declared = declared});
}

TEST(ClosureCheck, ANumberThatTheLoopSetsIsRefusedInItsStep) {
  for (const int change : {1, 2, 5, 9}) {
    const Trained trained = trainTwice(changedByLoop(change, /*declared=*/true));
    EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kPlanMismatch);
    EXPECT_EQ(trained.steps, change);
    expectSays(trained.refusal.text, {"is 4.0 now and was 1.0"});
    EXPECT_EQ(trained.difference, "");
  }
}

// The closures cannot run for the steps that ran during capture.
TEST(ClosureCheck, WithHiddenHostStateTheFirstFourStepsAreSaidNotToBeCompared) {
  const Trained trained = trainTwice(changedByLoop(2, /*declared=*/false));
  EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(trained.steps, 4);
  expectSays(trained.refusal.text, {"steps 1 to 4 were not compared", "declared host state"});
}

// One number varies from the beginning, so the loss is traced in each step; the other one changes
// later.
TEST(ClosureCheck, ATracedLossIsComparedAsAWhole) {
  const Trained trained = trainTwice(numbered({.scale = [](Numbered& own, const Tensor& loss) {
    return loss * (1 + 0.125 * own.updates) + (own.updates < 7 ? 0. : 1.);
  }}));
  EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(trained.steps, 7);
  expectSays(trained.refusal.text, {"aten.add.", "is 1.0 now and was 0.0"});
  EXPECT_EQ(trained.difference, "");
}

TEST(ClosureCheck, AnotherOpInALateStepIsRefused) {
  const Trained trained = trainTwice(numbered({.scale = [](Numbered& own, const Tensor& loss) {
    const Tensor scaled = loss * (1 + 0.125 * own.updates);
    return own.updates < 8 ? scaled : scaled.square();
  }}));
  EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(trained.steps, 8);
  expectSays(trained.refusal.text, {"aten.pow", "capture again"});
  EXPECT_EQ(trained.difference, "");
}

TEST(ClosureCheck, AnotherReportedTensorIsRefused) {
  const Trained trained =
      trainTwice(numbered({.scale = [](Numbered&, const Tensor& loss) { return loss; }}));
  EXPECT_EQ(trained.difference, "");
  Training training;
  int calls = 0;
  Description description = training.describe();
  description.loss = [&](const Tensor& x, const Tensor& y) {
    const Tensor loss = training.forward(x, y), twice = loss * 2;
    twice.backward();
    return ++calls % 2 == 0 ? loss : twice;
  };
  const Failed failed = failureOf([&] { capture(description); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kUnsupported);
  expectSays(failed.text, {"`loss` returns another tensor"});
}

struct Write {
  const char* name;
  std::function<void(Tensor&)> write;
  std::vector<std::string> says = {"from outside of the step", "4 bytes", "as an input"};
};

class OutsideTensor : public testing::TestWithParam<Write> {};

TEST_P(OutsideTensor, ThatIsWrittenBetweenStepsIsRefused) {
  const Trained trained = trainTwice(
      numbered({.scale = [](Numbered& own, const Tensor& loss) { return loss * own.weight; },
                .before =
                    [](Numbered& own, int i) {
                      if (i == 5) GetParam().write(own.weight);
                    }}));
  EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(trained.steps, 5);
  expectSays(trained.refusal.text, GetParam().says);
  EXPECT_EQ(trained.difference, "");
}

INSTANTIATE_TEST_SUITE_P(
    Writes, OutsideTensor,
    testing::Values(Write{"in_place", [](Tensor& weight) { weight.fill_(4); }},
                    Write{"by_pointer", [](Tensor& weight) { *weight.data_ptr<float>() = 4; }},
                    Write{"replaced",
                          [](Tensor& weight) { weight = at::full({}, 4.f); },
                          {"host data that changes", "make it an input"}}),
    [](const auto& info) { return std::string(info.param.name); });

// Before the plan takes it, it may change: plain libtorch would see it, too.
TEST(ClosureCheck, ATensorThatIsWrittenBetweenCaptureAndPlanIsTakenThen) {
  Numbered eager, planned;
  const auto describe = [](Numbered& own) {
    Description description = own.describe();
    description.loss = [&own](const Tensor& x, const Tensor& y) {
      const Tensor loss = own.forward(x, y) * own.weight;
      loss.backward();
      return loss;
    };
    return description;
  };
  eager.weight.fill_(3);
  torch::manual_seed(4);
  trainEagerly(eager, describe(eager), 0, 6);
  const Step step = capture(describe(planned));
  planned.weight.fill_(3);
  torch::manual_seed(4);
  Runner runner = makeRunner(step);
  train(runner, planned, 0, 6);
  runner.storeTo(planned.model);
  expectSame(eager, planned);
}

/// Branches on a value that no made-up value takes.
const Scale kBranchOnALoss = [](Numbered&, const Tensor& loss) {
  const double value = loss.item<double>();
  return value > 1.25 && value < 1.375 ? loss * 2 : loss;
};

TEST(ClosureCheck, ABranchOnAValueThatIsReadIsRefusedWhereItIsTaken) {
  int first = -1;
  {
    const Program program = numbered({})();
    torch::manual_seed(11);
    for (int i = 0; i < 60 && first < 0; ++i) {
      const auto [x, y] = program.batch(i);
      const double value = program.loss(x, y).item<double>();
      if (value > 1.25 && value < 1.375) first = i;
      program.update();
    }
  }
  ASSERT_GT(first, 0) << "no loss of the training lies there";
  for (const std::optional<double> share : {std::optional<double>(), {0.9}, {0.7}, {0.5}}) {
    const Trained trained = trainTwice(numbered({.scale = kBranchOnALoss, .declared = true}),
                                       {.steps = first + 2, .share = share});
    EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kPlanMismatch) << share.value_or(1);
    EXPECT_EQ(trained.steps, first);
    expectSays(trained.refusal.text, {"item()"});
    EXPECT_EQ(trained.difference, "");
  }
}

TEST(ClosureCheck, ABranchOnAnInputIsRefusedWhereItIsTaken) {
  const MakeProgram branching = [make = numbered({.declared = true})] {
    Program program = make();
    program.batch = [](int i) {
      const auto [x, y] = makeBatch(i);
      return std::pair(x, y.remainder(i == 7 ? 3 : 2));
    };
    auto* own = static_cast<Numbered*>(program.owned.get());
    program.loss = [own](const Tensor& x, const Tensor& y) {
      Tensor loss = own->forward(x, y);
      if (y.max().item<int64_t>() == 2) loss = loss.square();
      loss.backward();
      return loss;
    };
    return program;
  };
  const Trained trained = trainTwice(branching);
  EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(trained.steps, 7);
  EXPECT_EQ(trained.difference, "");
}

// A number that host code reads from a tensor which the step writes is the step's, not the tensor's
// first one.
TEST(ClosureCheck, AValueOfAnOutsideTensorThatTheStepWritesIsRead) {
  const Trained trained = trainTwice(numbered({.scale = [](Numbered& own, const Tensor& loss) {
    own.weight.add_(1);
    const double count = own.weight.item<double>();
    return loss * std::min(0.9, count / 10);
  }}));
  EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kUnsupported);
  expectSays(trained.refusal.text, {"item()"});
}

TEST(ClosureCheck, AReadOfALossIsRefusedWhereNothingCouldTellWhatItDecides) {
  const auto failureWith = [](const Scale& scale, bool declared) {
    return trainTwice(numbered({.scale = scale, .declared = declared})).refusal;
  };
  const Scale logs = [](Numbered&, const Tensor& loss) {
    loss.item<double>();
    return loss;
  };
  EXPECT_EQ(failureWith(logs, true).text, "");
  expectSays(failureWith(logs, false).text, {"hidden host state", "HostState::kDeclared"});
  const Scale rewrites = [](Numbered& own, const Tensor& loss) {
    const Tensor counter = own.model->buffers().empty() ? own.weight : own.model->buffers()[0];
    loss.item<double>();
    const Tensor twice = loss.detach().clone();
    twice.item<double>();
    twice.mul_(2);
    return loss + twice * 0 + counter * 0;
  };
  expectSays(failureWith(rewrites, true).text, {"writes afterwards", "clone"});
  const Scale varies = [](Numbered& own, const Tensor& loss) {
    loss.item<double>();
    return loss * (1 + own.updates);
  };
  expectSays(failureWith(varies, true).text, {"change from step to step"});
}

// What a loop keeps in such a tensor is the plan's while it runs.
TEST(ClosureCheck, AnOutsideTensorThatTheStepWritesIsNotTheLoopsToWrite) {
  const Trained trained = trainTwice(numbered({.scale =
                                                   [](Numbered& own, const Tensor& loss) {
                                                     own.weight.add_(loss.detach());
                                                     return loss;
                                                   },
                                               .before =
                                                   [](Numbered& own, int i) {
                                                     if (i == 2) own.weight.zero_();
                                                   }}));
  EXPECT_EQ(trained.refusal.code, ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(trained.steps, 2);
  expectSays(trained.refusal.text, {"between two steps", "inside of the step alone"});
}

TEST(ClosureCheck, ALossThatCountsStaysInStep) {
  struct Counting : Numbered {
    int losses = 0;
  };
  const MakeProgram make = [] {
    const auto own = std::make_shared<Counting>();
    Program program;
    program.module = own->model.ptr();
    program.optimizers = own->optimizer.get();
    program.loss = [own](const Tensor& x, const Tensor& y) {
      ++own->losses;
      return own->loss(x, y);
    };
    program.update = [own] {
      own->setRate(1e-2 / (1 + own->losses / 5));
      own->update();
    };
    return program;
  };
  const Trained trained = trainTwice(make, {.steps = 30});
  EXPECT_EQ(trained.refusal.text, "");
  EXPECT_EQ(trained.difference, "");
}

/// A training whose loss has another number from the seventh step on.
Program changingLate(const std::shared_ptr<Numbered>& own, const std::function<void()>& update) {
  Program program;
  program.module = own->model.ptr();
  program.optimizers = own->optimizer.get();
  program.loss = [own](const Tensor& x, const Tensor& y) {
    const Tensor loss = own->forward(x, y) * (own->updates < 6 ? 1 : 2);
    loss.backward();
    return loss;
  };
  program.update = [own, update] {
    update();
    ++own->updates;
  };
  return program;
}

// Running statistics have moved on when a step is refused, and so has the generator.
TEST(ClosureCheck, ARefusedStepLeavesNoTraceInStatisticsAndGenerator) {
  const MakeProgram make = [] {
    struct Normed : Numbered {
      Normed() {
        torch::manual_seed(3);
        model = torch::nn::Sequential(torch::nn::Linear(8, 16), torch::nn::BatchNorm1d(16),
                                      torch::nn::Dropout(0.2), torch::nn::Linear(16, 4));
        optimizer = adamW(model->parameters());
      }
    };
    const auto own = std::make_shared<Normed>();
    return changingLate(own, [own = own.get()] { own->update(); });
  };
  const Trained trained = trainTwice(make);
  EXPECT_EQ(trained.steps, 6);
  EXPECT_EQ(trained.difference, "");
}

// What the loop set before or during the steps that ran in the capture is seen in the one after
// them. A scheduler that nobody named is `update`'s own.
TEST(ClosureCheck, ANumberOfTheUpdateThatTheLoopSetsIsRefusedAfterTheCapturedSteps) {
  const auto clipped = [](const std::function<void(Numbered&, int i)>& before) {
    return [before] {
      Program program = numbered({.before = before})();
      auto* own = static_cast<Numbered*>(program.owned.get());
      program.update = [own] {
        for (const Tensor& parameter : own->model->parameters()) parameter.grad().mul_(own->ofLoop);
        own->update();
      };
      return program;
    };
  };
  const Trained changed = trainTwice(clipped([](Numbered& own, int i) { own.ofLoop = 1 + i; }));
  EXPECT_EQ(changed.refusal.code, ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(changed.steps, 4);
  expectSays(changed.refusal.text,
             {"aten.mul_", "first 4 steps", "HostState::kDeclared", "`rewind`"});
  const Trained later =
      trainTwice(clipped([](Numbered& own, int i) { own.ofLoop = 1 + std::max(0, i - 4); }));
  EXPECT_EQ(later.refusal.text, "");
  EXPECT_EQ(later.difference, "");
}

/// An optimizer of somebody's own, with a host number that nobody else knows.
struct Decaying : torch::optim::SGD {
  using SGD::SGD;
  int64_t count = 0;
  Tensor step(LossClosure closure = nullptr) override {
    Tensor result = SGD::step(closure);
    const at::NoGradGuard noGradient;
    ++count;
    for (Tensor& parameter : param_groups()[0].params()) parameter.mul_(1 - 0.01 / count);
    return result;
  }
};

class Scheduled : public testing::TestWithParam<unsigned> {};

// In the fifth step, with 3: the first that is traced again.
TEST_P(Scheduled, ASchedulerThatNobodyNamedIsFollowed) {
  const MakeProgram make = [] {
    const auto own = std::make_shared<Numbered>();
    own->optimizer = std::make_unique<Decaying>(own->model->parameters(), 1e-2);
    const auto scheduler = std::make_shared<torch::optim::StepLR>(*own->optimizer, GetParam(), 0.5);
    Program program;
    program.module = own->model.ptr();
    program.optimizers = own->optimizer.get();
    program.loss = [own](const Tensor& x, const Tensor& y) { return own->loss(x, y); };
    program.update = [own, scheduler] {
      own->update();
      scheduler->step();
    };
    return program;
  };
  const Trained trained = trainTwice(make);
  EXPECT_EQ(trained.refusal.text, "");
  EXPECT_EQ(trained.difference, "");
}

INSTANTIATE_TEST_SUITE_P(Every, Scheduled, testing::Values(2, 3, 4, 7));

// A step that fails on the device ends the telling of values: others may capture then.
TEST(ClosureCheck, AFailedStepThatReadsValuesHoldsUpNobody) {
  Training training;
  Description description = training.describe();
  description.hostState = HostState::kDeclared;
  description.loss = [&training](const Tensor& x, const Tensor& y) {
    const Tensor loss = training.loss(x, y);
    loss.item<double>();
    return loss;
  };
  const Step step = capture(description);
  Runner runner = makeRunner(step);
  const auto [x, y] = makeBatch(0);
  expectSays(failureOf([&] { runner(x, at::full_like(y, 99)); }).text, {"out of bounds"});
  Training other;
  const Step next = capture(other.describe());
}

/// A late number beside an `update` that overwrites state whole.
MakeProgram overwriting(const std::function<void(Numbered&, const Tensor& mean)>& update) {
  return [update] {
    const auto own = std::make_shared<Numbered>();
    const Tensor mean = own->model->parameters()[0].detach().clone();
    Program program = changingLate(own, [own = own.get(), mean, update] { update(*own, mean); });
    program.outside = {mean};
    return program;
  };
}

// State that the update writes whole need not be kept until then.
TEST(ClosureCheck, ARefusedStepKeepsStateThatTheUpdateOverwrites) {
  const MakeProgram zeroed = overwriting([](Numbered& own, const Tensor&) {
    own.optimizer->step();
    own.optimizer->zero_grad(/*set_to_none=*/false);
  });
  const MakeProgram averaged = overwriting([](Numbered& own, const Tensor& mean) {
    const at::NoGradGuard noGradient;
    own.update();
    mean.copy_(mean * 0.9 + own.model->parameters()[0] * 0.1);
  });
  for (const std::optional<double> share : {std::optional<double>(), {0.7}}) {
    const Trained kept = trainTwice(zeroed, {.share = share});
    EXPECT_EQ(kept.refusal.code, ir::ErrorCode::kPlanMismatch);
    EXPECT_EQ(kept.steps, 6);
    EXPECT_EQ(kept.difference, "");
    expectSays(kept.refusal.text, {"can still be saved or stored back"});
    // Where other bytes lay in between, that is said.
    const Trained trained = trainTwice(averaged, {.share = share});
    EXPECT_EQ(trained.steps, 6);
    const bool isLost = trained.refusal.text.find("is lost") != std::string::npos;
    EXPECT_TRUE(isLost || trained.difference.empty()) << trained.difference;
  }
}

// Steps that are not checked: what was not seen is said.
TEST(ClosureCheck, AChangeBetweenCheckedStepsNamesTheStepsThatWereNotCompared) {
  const MakeProgram make =
      numbered({.scale = [](Numbered& own, const Tensor& loss) { return loss * own.ofLoop; },
                .before = [](Numbered& own, int i) { own.ofLoop = i < 18 ? 1 : 4; }});
  const Trained trained = trainTwice(make, {.steps = 24, .run = {.checkEvery = 4}});
  EXPECT_EQ(trained.steps, 20);
  expectSays(trained.refusal.text,
             {"steps 18 to 20 were not compared", "checkEvery = 1", "checkpoint"});
}

}  // namespace
}  // namespace stowage::tests
