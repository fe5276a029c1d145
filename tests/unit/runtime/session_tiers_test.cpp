// SPDX-License-Identifier: Apache-2.0
//
// The one-call interface with updates on the host and a disk below the host: the bits of plain
// libtorch, plans that were loaded, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/disk_folder.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/session_training.h"

namespace stowage::tests {
namespace {

constexpr Bytes kDisk(int64_t{16} << 20);

/// Four layers, larger than the blocks of a disk.
Training wideTraining(decltype(&adamW) makeOptimizer = &adamW) {
  Training training;
  torch::manual_seed(3);
  using torch::nn::Linear;
  training.model =
      torch::nn::Sequential(Linear(8, 96), torch::nn::GELU(), Linear(96, 96), torch::nn::GELU(),
                            Linear(96, 96), torch::nn::GELU(), Linear(96, 4));
  training.optimizer = makeOptimizer(training.model->parameters());
  return training;
}

ir::Infeasible refusalOf(ir::Error error) {
  const ir::PlanError found = ir::takePayload(std::move(error));
  EXPECT_TRUE(found.infeasible()) << found.text();
  return found.infeasible().value_or(ir::Infeasible{});
}

/// The smallest budget, or for want of host memory the smallest host.
Bytes smallestFor(const Step& step, PlanOptions options) {
  options.budget = Bytes(4096);
  return refusalOf(plan(step, options).takeError()).smallestBudget;
}

constexpr passes::AllowedActions kNothing = {.offload = false,
                                             .recompute = false,
                                             .inPlaceReuse = false,
                                             .reorder = false,
                                             .rowBlocks = false};

/// Room for the step only where updates run on the host.
PlanOptions onHost(const Step& step) {
  PlanOptions options = {.allowed = kNothing};
  options.budget = Bytes(smallestFor(step, options).value() - step.target().alignBytes);
  options.allowed.hostStep = true;
  return options;
}

int64_t runsOnHost(const Plan& plan) {
  const auto& commands = plan.schedule().commands;
  return std::count_if(commands.begin(), commands.end(), [](const ir::Command& command) {
    return command.stream == ir::Stream::kHostCompute;
  });
}

class SessionUpdatesOnTheHost : public testing::TestWithParam<decltype(&adamW)> {};

TEST_P(SessionUpdatesOnTheHost, HaveTheBitsOfPlainLibtorch) {
  const ScratchFolder folder("session_on_host");
  Training eager = wideTraining(GetParam());
  trainEagerly(eager, 0, 6);
  {
    Training training = wideTraining(GetParam());
    const Step step = capture(training.describe());
    const Plan made = orThrow(plan(step, onHost(step)));
    ASSERT_GT(runsOnHost(made), 0);
    made.save(folder.at("plan.json"));
    Runner runner = Runner::create(made, step);
    train(runner, training, 0, 6);
    runner.storeTo(training.model);
    expectSame(eager, training);
  }
  Training training = wideTraining(GetParam());
  const Step step = capture(training.describe());
  const Plan loaded = Plan::load(folder.at("plan.json"), step);
  EXPECT_GT(runsOnHost(loaded), 0);
  Runner runner = Runner::create(loaded, step);
  train(runner, training, 0, 6);
  runner.storeTo(training.model);
  expectSame(eager, training);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SessionUpdatesOnTheHost,
                         testing::Values(&adamW, &fusedAdamW, &momentum));

// What is compared are the closures, which are traced without values. The first four steps have
// the numbers of the capture.
TEST(SessionOnHost, AChangedClosureEndsTheTrainingBeforeItsUpdate) {
  Training eager = wideTraining();
  trainEagerly(eager, 0, 6);
  Training training = wideTraining();
  bool isChanged = false;
  const Step step = capture(training.describeChanging(isChanged));
  Runner runner = Runner::create(orThrow(plan(step, onHost(step))), step, {.checkEvery = 1});
  train(runner, training, 0, 6);
  isChanged = true;
  const auto [x, y] = makeBatch(6);
  EXPECT_EQ(failureOf([&] { runner(x, y); }).code, ir::ErrorCode::kPlanMismatch);
  runner.storeTo(training.model);
  expectSame(eager, training);
}

class SessionDisk : public DiskTest {
 protected:
  void SetUp() override {
    if (!takesDirectReads()) GTEST_SKIP() << "the folder is on no disk";
  }
  /// Half of the host memory that the plan takes where it is not limited, and a disk.
  PlanOptions scarce(const Step& step) const {
    PlanOptions options = {.budget = percentOfPeak(50), .allowed = kNothing};
    options.allowed.offload = true;
    const Plan free = orThrow(plan(step, options));
    options.limits = {.host = Bytes(free.schedule().predicted.hostPeakBytes.value() / 2),
                      .disk = kDisk};
    options.diskFolder = folder_.string();
    return options;
  }
};

TEST_F(SessionDisk, TrainsInHalfOfTheHostMemoryWithTheBitsOfPlainLibtorch) {
  const ScratchFolder files("session_disk");
  Training eager = wideTraining();
  trainEagerly(eager, 0, 6);
  {
    Training training = wideTraining();
    const Step step = capture(training.describe());
    const Plan made = orThrow(plan(step, scarce(step)));
    ASSERT_GT(made.schedule().arenaBytes(ir::Space::kDisk), Bytes(0));
    made.save(files.at("plan.json"));
    Runner runner = Runner::create(made, step, {.verifyDisk = true});
    train(runner, training, 0, 6);
    runner.storeTo(training.model);
    expectSame(eager, training);
  }
  Training training = wideTraining();
  const Step step = capture(training.describe());
  const Plan loaded = Plan::load(files.at("plan.json"), step);
  const Failed nowhere = failureOf([&] { Runner::create(loaded, step); });
  EXPECT_EQ(nowhere.code, ir::ErrorCode::kInvalidArgument);
  expectSays(nowhere.text, {"on disk", "expected RunOptions::diskFolder"});
  Runner runner = Runner::create(loaded, step, {.diskFolder = folder_.string()});
  train(runner, training, 0, 6);
  runner.storeTo(training.model);
  expectSame(eager, training);
  EXPECT_TRUE(isEmpty()) << "of the disk's folder";
}

TEST_F(SessionDisk, WorksBesideUpdatesOnTheHost) {
  Training eager = wideTraining();
  trainEagerly(eager, 0, 4);
  Training training = wideTraining();
  const Step step = capture(training.describe());
  PlanOptions options = scarce(step);
  options.allowed.hostStep = true;
  Runner runner = Runner::create(orThrow(plan(step, options)), step);
  train(runner, training, 0, 4);
  runner.storeTo(training.model);
  expectSame(eager, training);
}

TEST_F(SessionDisk, AFolderThatIsNoneIsRefused) {
  Training training = wideTraining();
  const Step step = capture(training.describe());
  PlanOptions options = scarce(step);
  options.diskFolder = (folder_ / "missing").string();
  const Failed failed = failureOf([&] { orThrow(plan(step, options)); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
  expectSays(failed.text, {"disk '" + options.diskFolder + "'", "expected a folder"});
}

bool offers(const ir::Infeasible& infeasible, const std::string& change) {
  return std::any_of(infeasible.ways.begin(), infeasible.ways.end(),
                     [&](const auto& way) { return way.fits && way.change.rfind(change, 0) == 0; });
}

TEST_F(SessionDisk, IsOfferedWhereHostMemoryIsShort) {
  Training training = wideTraining();
  const Step step = capture(training.describe());
  PlanOptions options = scarce(step);
  options.limits.disk = Bytes(0);
  ir::Expected<Plan> refused = plan(step, options);
  ASSERT_FALSE(static_cast<bool>(refused));
  const ir::Infeasible found = refusalOf(addWaysOut(refused.takeError(), step, options));
  EXPECT_EQ(found.space, "host");
  EXPECT_TRUE(offers(found, "a disk of "));
  EXPECT_TRUE(offers(found, "no limit of the host"));
}

TEST(SessionWaysOut, NameWhatWasNotAllowed) {
  Training training = wideTraining();
  const Step step = capture(training.describe());
  const PlanOptions options = {.budget = percentOfPeak(60), .allowed = kNothing};
  ir::Expected<Plan> refused = plan(step, options);
  ASSERT_FALSE(static_cast<bool>(refused));
  const ir::Infeasible found = refusalOf(addWaysOut(refused.takeError(), step, options));
  EXPECT_TRUE(offers(found, "allow offload"));
  ir::Expected<Plan> none = plan(step, {});
  const ir::PlanError error = ir::takePayload(addWaysOut(none.takeError(), step, {}));
  EXPECT_EQ(error.code(), ir::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage::tests
