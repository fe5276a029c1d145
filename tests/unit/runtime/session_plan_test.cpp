// SPDX-License-Identifier: Apache-2.0
//
// What the one-call interface says of a plan and of a training that is under way.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "tests/support/session_training.h"

namespace stowage::tests {
namespace {

/// A plan in 70 % of what the step needs when nothing is moved.
Plan planTightly(const Step& step) {
  const Plan all = orThrow(plan(step, {.budget = 1_MiB}));
  return orThrow(plan(step, {.budget = Bytes(all.keepAll().value() * 7 / 10)}));
}

TEST(SessionPlan, TellsItsPeakAndItsStepTime) {
  Training training;
  const Step step = capture(training.describe());
  const Plan all = orThrow(plan(step, {.budget = 1_MiB}));
  const Plan tight = planTightly(step);
  EXPECT_EQ(all.peak(), all.keepAll());
  EXPECT_LE(tight.peak(), tight.budget());
  EXPECT_GT(all.predicted(), Nanoseconds(0));
  // Copies or recomputed ops take time, and more memory is never slower.
  EXPECT_GE(tight.predicted(), all.predicted());
  Runner runner = Runner::create(tight, step);
  train(runner, training, 0, 3);
  // What the ops of these steps were given.
  EXPECT_EQ(tight.peak(), runner.internals().peak());
}

TEST(SessionPlan, ArenasThatThisMachineHasNoMemoryForAreRefused) {
  Training training;
  const Step step = capture(training.describe());
  const Plan vast = orThrow(plan(step, {.budget = 1_GiB * (int64_t{1} << 19)}));
  const Failed refused = failureOf([&] { Runner::create(vast, step); });
  EXPECT_EQ(refused.code, ir::ErrorCode::kEnvironment);
  expectSays(refused.text, {"the plan's arenas need 512.00 TiB of host memory", " has ",
                            "plan with a smaller budget"});
  // Nothing was taken.
  Runner runner = Runner::create(planTightly(step), step);
  train(runner, training, 0, 1);
}

// Another limit of the host, which nothing reaches, makes a planner of its own.
TEST(SessionPlan, APlansAnswerDoesNotDependOnEarlierBudgets) {
  Training training;
  const Step step = capture(training.describe());
  const Plan first = planTightly(step);
  const Bytes budget = first.budget();
  orThrow(plan(step, {.budget = Bytes(budget.value() * 11 / 10)}));
  const Plan second = orThrow(plan(step, {.budget = budget}));
  const Plan fresh = orThrow(plan(step, {.budget = budget, .limits = {.host = 1_GiB * 1024}}));
  EXPECT_EQ(second.schedule(), first.schedule());
  EXPECT_EQ(fresh.schedule().commands, first.schedule().commands);
}

TEST(SessionPlan, SeveralThreadsMayPlanOneStep) {
  Training training;
  const Step step = capture(training.describe());
  const Plan first = planTightly(step);
  std::vector<std::thread> threads;
  std::array<bool, 4> same{};
  for (size_t i = 0; i < same.size(); ++i) {
    threads.emplace_back([&, i] {
      const Bytes other(first.budget().value() * (11 + static_cast<int64_t>(i)) / 10);
      orThrow(plan(step, {.budget = other}));
      same[i] = orThrow(plan(step, {.budget = first.budget()})).schedule() == first.schedule();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, (std::array<bool, 4>{true, true, true, true}));
}

TEST(SessionPlan, ABudgetMayBeAShareOfTheUnplannedPeak) {
  Training training;
  const Step step = capture(training.describe());
  const Plan all = orThrow(plan(step, {.budget = percentOfPeak(300)}));
  const Plan most = orThrow(plan(step, {.budget = percentOfPeak(80)}));
  // The unplanned peak is alive at once; the arena that holds it may be larger.
  const int64_t peak = all.budget().value() / 3;
  EXPECT_LE(peak, all.keepAll().value());
  EXPECT_GT(peak, all.keepAll().value() * 9 / 10);
  const int64_t share = peak * 8 / 10;
  EXPECT_LE(std::abs(most.budget().value() - share), step.target().alignBytes);
  EXPECT_EQ(most.budget().value() % step.target().alignBytes, 0);
  EXPECT_LE(most.peak(), most.budget());
}

TEST(SessionPlan, ABudgetThatIsNoShareIsRefused) {
  Training training;
  const Step step = capture(training.describe());
  const auto planIn = [&](Size budget) {
    const Failed failed = failureOf([&] { orThrow(plan(step, {.budget = budget})); });
    EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument);
    return failed.text;
  };
  for (const auto& [percent, found] :
       {std::pair(0.0, "found a budget of 0 %"), std::pair(-62.5, "found a budget of -62.5 %"),
        std::pair(1e6, "found a budget of 1000000 %"),
        std::pair(std::nan(""), "found a budget of 0 %")}) {
    expectSays(planIn(percentOfPeak(percent)), {found, "more than 0 % and at most 100000 %"});
  }
  expectSays(planIn(percentOfPeak(0.001)), {"0 bytes"});
  Size ofDevice;
  ofDevice.of = Size::Of::kDevice;
  ofDevice.partPerMillion = 800'000;
  expectSays(planIn(ofDevice), {"share of the device", "percentOfPeak(60)"});
}

/// A step whose loss holds three tensors of 2 MiB; in row blocks less.
Step captureLargeLoss(Training& training) {
  training.model = torch::nn::Sequential(torch::nn::Linear(8, 2048));
  training.optimizer = adamW(training.model->parameters());
  return capture(training.describe(), torch::zeros({256, 8}), torch::zeros({256}, at::kLong));
}

TEST(SessionPlan, WhatIsNeededWithoutAPlanIsThatOfTheWholeLoss) {
  const ScratchFolder folder("session_row_blocks");
  Training training;
  const Step step = captureLargeLoss(training);
  const Plan all = orThrow(plan(step, {.budget = 64_MiB}));
  const Plan inBlocks = orThrow(plan(step, {.budget = 3_MiB}));
  EXPECT_GT(all.keepAll(), 6_MiB);
  EXPECT_EQ(inBlocks.keepAll(), all.keepAll());
  inBlocks.save(folder.at("plan.json"));
  EXPECT_EQ(Plan::load(folder.at("plan.json"), step).keepAll(), all.keepAll());
}

TEST(SessionPlan, AFileHoldsAllOfIt) {
  const ScratchFolder folder("session_plan");
  const std::string path = folder.at("plan.json");
  writeText(path, "of an earlier training");
  Training eager;
  trainEagerly(eager, 0, 4);
  {
    Training training;
    const Step step = capture(training.describe());
    planTightly(step).save(path);
  }
  EXPECT_EQ(folder.count(), 1U);
  Training training;
  const Step step = capture(training.describe());
  const Plan loaded = Plan::load(path, step);
  const Plan made = planTightly(step);
  EXPECT_EQ(loaded.budget(), made.budget());
  EXPECT_EQ(loaded.keepAll(), made.keepAll());
  EXPECT_LE(loaded.peak(), loaded.budget());
  EXPECT_LT(loaded.peak(), loaded.keepAll());
  EXPECT_GT(loaded.predicted(), Nanoseconds(0));
  Runner runner = Runner::create(loaded, step);
  torch::manual_seed(4);
  train(runner, training, 0, 4);
  runner.storeTo(training.model);
  expectSame(eager, training);
  // As often as one likes, with the same bytes.
  loaded.save(folder.at("again.json"));
  EXPECT_EQ(readText(path), readText(folder.at("again.json")));
}

TEST(SessionPlan, AFileOfAnotherStepIsRefused) {
  const ScratchFolder folder("session_plan");
  const std::string path = folder.at("plan.json");
  Training training;
  {
    const Step step = capture(training.describe());
    planTightly(step).save(path);
  }
  Training other(&momentum);
  const Step step = capture(other.describe());
  const auto loading = [&] { return failureOf([&] { Plan::load(path, step); }); };
  const Failed failed = loading();
  EXPECT_EQ(failed.code, ir::ErrorCode::kPlanMismatch);
  expectSays(failed.text, {path, "found graph", "of the captured step", "fingerprint",
                           "for another step", "the same model, sizes of inputs and optimizer"});
  std::filesystem::remove(path);
  EXPECT_EQ(loading().code, ir::ErrorCode::kIo);
  writeText(path, "{\"kind\": \"plan\"");
  EXPECT_EQ(loading().code, ir::ErrorCode::kParse);
}

TEST(SessionPlan, AFileThatWasChangedIsRefused) {
  const ScratchFolder folder("session_plan");
  const std::string path = folder.at("plan.json");
  Training training;
  const Step step = capture(training.describe());
  planTightly(step).save(path);
  const std::string text = readText(path);
  const size_t budget = text.find("\"budget_bytes\":");
  ASSERT_NE(budget, std::string::npos);
  writeText(path, text.substr(0, budget) + "\"budget_bytes\":512" +
                      text.substr(text.find_first_of(",}\n", budget)));
  const Failed failed = failureOf([&] { Plan::load(path, step); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kViolation);
  expectSays(failed.text, {path, "verifier's rules"});
}

// The judgement is that of `stowage verify`: claims are held against the plan's own costs.
TEST(SessionPlan, AFileWithFalseClaimsIsRefused) {
  const ScratchFolder folder("session_plan");
  const std::string path = folder.at("plan.json");
  Training training;
  const Step step = capture(training.describe());
  planTightly(step).save(path);
  std::string text = readText(path);
  const std::string key = "\"compute_ns\":";
  const size_t claim = text.find(key);
  ASSERT_NE(claim, std::string::npos);
  text.insert(claim + key.size(), "1");
  writeText(path, text);
  const Failed failed = failureOf([&] { Plan::load(path, step); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kViolation);
  expectSays(failed.text, {path, "V30: compute time of 1"});
}

TEST(SessionPlan, AFileThatCannotBeWrittenIsRefused) {
  const ScratchFolder folder("session_plan");
  Training training;
  const Step step = capture(training.describe());
  const Plan made = planTightly(step);
  const std::string path = folder.at("nowhere/plan.json");
  const Failed failed = failureOf([&] { made.save(path); });
  EXPECT_EQ(failed.code, ir::ErrorCode::kEnvironment);
  expectSays(failed.text, {path});
}

TEST(SessionPlan, StepsDoneAreThoseOfTheWholeTraining) {
  const ScratchFolder folder("session_steps");
  {
    Training first;
    const Step step = capture(first.describe());
    Runner runner = makeRunner(step);
    EXPECT_EQ(runner.stepsDone(), 0);
    train(runner, first, 0, 3);
    EXPECT_EQ(runner.stepsDone(), 3);
    runner.save(folder.at("checkpoint"));
  }
  Training second;
  const Step step = capture(second.describe());
  Runner runner = makeRunner(step);
  runner.load(folder.at("checkpoint"));
  EXPECT_EQ(runner.stepsDone(), 3);
  const auto batch = makeBatch(3);
  EXPECT_EQ(runner.enqueue(batch.first, batch.second), 0);
  EXPECT_EQ(runner.stepsDone(), 4);
  second.model->eval();
  EXPECT_EQ(failureOf([&] { runner(batch.first, batch.second); }).code,
            ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(runner.stepsDone(), 4);
}

}  // namespace
}  // namespace stowage::tests
