// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints from elsewhere: however many steps one has done, taking it up is as quick; what is
// damaged is refused with its file before anything is changed.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/torch/rng_keeper.h"
#include "tests/support/counting_step.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tensor_file.h"
#include "tests/support/training_process.h"
#include "tools/cli/exit_code.h"
#include "tools/training/step_counts.h"

namespace stowage::tests {
namespace {

const Planned& smallPlan() {
  static const Planned planned = keepAll(settingsOf(32));
  return planned;
}

/// One that knows what its closures count, as the programs' models do.
struct Advancing {
  std::shared_ptr<tools::ModelStep*> step = std::make_shared<tools::ModelStep*>(nullptr);
  Process process;

  explicit Advancing(const Planned& planned) : process(planned, optionsFor(step)) {
    *step = process.step.get();
  }
  static runtime::RunnerOptions optionsFor(std::shared_ptr<tools::ModelStep*> step) {
    runtime::RunnerOptions options;
    options.advance = [step](int64_t steps) { tools::advanceCounts((*step)->training, steps); };
    return options;
  }
};

class CheckpointInput : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.at(name); }
  std::string optimizerFile() const { return path("out/") + runtime::kOptimizerFile; }

  /// A checkpoint after three steps.
  void save(const Planned& planned = smallPlan(), int64_t steps = 3) {
    Process process(planned);
    process.train(0, steps);
    ASSERT_EQ(ir::describe(process.runner->save(path("out"))), "");
  }

  template <typename Edit>
  void editOptimizer(Edit edit) {
    editTensors(optimizerFile(), edit);
  }
  /// As if so many steps were done.
  void setSteps(int64_t steps) {
    for (const char* file : {runtime::kModelFile, runtime::kOptimizerFile}) {
      editTensors(path("out/") + file, [&](TensorFile& parts) {
        for (const char* key : {"stowage.steps", "stowage.model_steps", "stowage.data_position"}) {
          const auto found = parts.metadata.find(key);
          if (found != parts.metadata.end()) found->second = std::to_string(steps);
        }
        for (FileTensor& tensor : parts.tensors) {
          if (tensor.name.ends_with(".step")) tensor.bytes = countOf(static_cast<float>(steps));
        }
      });
    }
  }
  static std::vector<uint8_t> countOf(float count) { return bytesOf(std::vector<float>{count}); }

  /// How often numbers are worked out while `load` runs.
  int64_t callsOfLoading(bool countsItself, bool advances, std::function<bool()> stop = {}) {
    const Planned& planned = smallPlan();
    const std::unique_ptr<tools::ModelStep> step = captureAgain(planned.target, planned.settings);
    CountingStep counting(*step->captured);
    counting.countsItself = countsItself;
    runtime::RunnerOptions options;
    options.stop = std::move(stop);
    if (advances) {
      options.advance = [&](int64_t steps) { tools::advanceCounts(step->training, steps); };
    }
    const auto runner = orFail(runtime::Runner::create(counting,
                                                       {.graph = planned.graph,
                                                        .schedule = planned.schedule,
                                                        .target = planned.target,
                                                        .costs = &planned.costs},
                                                       std::move(options)));
    ir::Expected<runtime::ResumePoint> point = runner->load(path("out"));
    error_ = point ? "" : ir::describe(point.takeError());
    return counting.asked;
  }

  /// `load` refuses with this code, the optimizer's file and words, and changes nothing.
  void expectRefused(ir::ErrorCode code, const std::string& words) {
    Process process(smallPlan());
    const auto state = process.state();
    const auto generator = orFail(runtime::readGeneratorState(c10::kCPU));
    ir::Expected<runtime::ResumePoint> point = process.runner->load(path("out"));
    ASSERT_FALSE(static_cast<bool>(point)) << words;
    const ir::PlanError error = ir::takePayload(point.takeError());
    const std::string text = ir::describe(ir::makeError(error));
    EXPECT_EQ(error.code(), code) << text;
    EXPECT_EQ(tools::exitCodeFor(error.code()), tools::kExitBadInput) << text;
    EXPECT_EQ(error.location().file, optimizerFile()) << text;
    EXPECT_NE(text.find(words), std::string::npos) << text << "\nexpected: " << words;
    if (code == ir::ErrorCode::kParse) {
      EXPECT_EQ(process.state(), state) << words;
    }
    EXPECT_EQ(orFail(runtime::readGeneratorState(c10::kCPU)), generator) << words;
  }

  std::string error_;

 private:
  ScratchFolder folder_{"stowage_checkpoint_input"};
};

TEST_F(CheckpointInput, AnyNumberOfStepsIsTakenUpAsQuickly) {
  save();
  std::vector<int64_t> calls;
  for (const int64_t steps :
       {int64_t{10}, int64_t{100'000}, int64_t{1} << 24, runtime::kMostSteps}) {
    setSteps(steps);
    calls.push_back(callsOfLoading(/*countsItself=*/true, /*advances=*/true));
    EXPECT_EQ(error_, "") << steps;
  }
  // Those that the capture recorded.
  EXPECT_EQ(calls, std::vector<int64_t>(calls.size(), calls.front()));
  EXPECT_LT(calls.front(), 10);
}

TEST_F(CheckpointInput, StepsWithoutCountsHaveNothingToBringAlong) {
  save();
  setSteps(runtime::kMostSteps);
  editOptimizer([](TensorFile& file) {
    for (FileTensor& tensor : file.tensors) {
      if (tensor.name.ends_with(".step")) tensor.bytes = countOf(0);
    }
  });
  EXPECT_EQ(callsOfLoading(/*countsItself=*/false, /*advances=*/false), 0);
  EXPECT_EQ(error_, "");
}

// Closures of users may count where nobody sees it.
TEST_F(CheckpointInput, OtherClosuresAreTracedOncePerStepUntilSomebodyStopsIt) {
  save();
  setSteps(10);
  EXPECT_EQ(callsOfLoading(/*countsItself=*/true, /*advances=*/false), 10);
  EXPECT_EQ(error_, "");
  setSteps(runtime::kMostSteps);
  int64_t asked = 0;
  EXPECT_EQ(callsOfLoading(true, false, [&] { return ++asked > 20; }), 20);
  EXPECT_NE(error_.find("stopped after tracing 20 of the 2147483647 steps"), std::string::npos)
      << error_;
}

/// Straight on, and from a checkpoint with the counts brought on at once, in bits.
TEST_F(CheckpointInput, CountsThatWereBroughtOnGiveTheSameBits) {
  for (const Settings& more :
       {Settings{"decay_every=4"}, Settings{"optimizer=sgd", "momentum=0.9"},
        Settings{"optimizer=stowage_adamw"},
        Settings{"optimizer=stowage_adamw", "master_weights=on", "precision=bfloat16"}}) {
    const Planned planned = keepAll(settingsOf(32, more));
    Process straight(planned);
    straight.train(0, 14);
    save(planned, 11);
    Advancing resumed(planned);
    EXPECT_EQ(orFail(resumed.process.runner->load(path("out"))).steps, 11);
    resumed.process.train(11, 14);
    straight.losses.erase(straight.losses.begin(), straight.losses.begin() + 11);
    EXPECT_EQ(resumed.process.losses, straight.losses) << more.front();
    EXPECT_EQ(resumed.process.state(), straight.state()) << more.front();
  }
}

TEST_F(CheckpointInput, ARateThatFollowsAWarmupGoesOn) {
  Settings settings = settingsOf(32, {"warmup=8", "horizon=20"});
  for (std::string& setting : settings) {
    if (setting == "schedule=step") setting = "schedule=cosine";
  }
  const Planned planned = keepAll(settings);
  Process straight(planned);
  straight.train(0, 12);
  save(planned, 7);
  Advancing resumed(planned);
  orFail(resumed.process.runner->load(path("out")));
  resumed.process.train(7, 12);
  EXPECT_EQ(resumed.process.state(), straight.state());
}

TEST_F(CheckpointInput, ADamagedGeneratorIsABadFile) {
  save();
  std::vector<uint8_t> good;
  editOptimizer([&](TensorFile& file) { good = file.find("generator.cpu").bytes; });
  const auto expectBad = [&](std::vector<uint8_t> bytes, ir::DType dtype,
                             std::vector<int64_t> sizes, const std::string& words) {
    editOptimizer([&](TensorFile& file) {
      FileTensor& generator = file.find("generator.cpu");
      generator = {"generator.cpu", dtype, std::move(sizes), std::move(bytes)};
    });
    expectRefused(ir::ErrorCode::kParse, "tensor 'generator.cpu': " + words);
  };
  const auto size = static_cast<int64_t>(good.size());
  expectBad({1, 2, 3}, ir::DType::kU8, {3}, "found 3 bytes, expected " + std::to_string(size));
  expectBad({}, ir::DType::kU8, {0}, "found 0 bytes, expected ");
  // What a generator of a GPU has.
  expectBad(std::vector<uint8_t>(16), ir::DType::kU8, {16}, "found 16 bytes, expected ");
  expectBad(good, ir::DType::kF32, {size / 4}, "found F32 [" + std::to_string(size / 4));
  expectBad(good, ir::DType::kU8, {size / 8, 8}, "found U8 [");
  expectBad(std::vector<uint8_t>(good.size(), 0), ir::DType::kU8, {size}, "");
  expectBad(std::vector<uint8_t>(good.size(), 255), ir::DType::kU8, {size}, "");
  // Each of `left` and `next` is one that libtorch takes, and together they lie.
  std::vector<uint8_t> beyond = good;
  const int32_t left = 624;
  const uint64_t next = 600;
  std::memcpy(beyond.data() + 8, &left, sizeof(left));
  std::memcpy(beyond.data() + 16, &next, sizeof(next));
  expectBad(beyond, ir::DType::kU8, {size}, "found a generator that would draw past the end");
  editOptimizer([&](TensorFile& file) {
    file.find("generator.cpu") = {"generator.cpu", ir::DType::kU8, {size}, good};
  });
  EXPECT_EQ(orFail(Process(smallPlan()).runner->load(path("out"))).steps, 3);
}

TEST_F(CheckpointInput, EveryMomentOfAGeneratorIsGood) {
  at::manual_seed(3);
  for (int i = 0; i < 1300; ++i) {
    const auto state = orFail(runtime::readGeneratorState(c10::kCPU));
    ASSERT_EQ(ir::describe(runtime::checkGeneratorState(c10::kCPU, state)), "") << i;
    at::Generator generator = runtime::defaultGenerator(c10::kCPU);
    generator.get<at::CPUGeneratorImpl>()->random();
  }
}

TEST_F(CheckpointInput, CountsThatAreNoneAreABadFile) {
  save();
  const auto expectBad = [&](const char* key, const std::string& text, const std::string& range) {
    std::string good;
    editOptimizer([&](TensorFile& file) { good = std::exchange(file.metadata.at(key), text); });
    expectRefused(ir::ErrorCode::kParse, std::string("metadata '") + key + "' is '" + text +
                                             "', expected a number from 0 to " + range);
    editOptimizer([&](TensorFile& file) { file.metadata.at(key) = good; });
  };
  for (const char* text :
       {"-1", "2147483648", "9223372036854775807", "9223372036854775808", "3.5", "", "three"}) {
    expectBad("stowage.steps", text, "2147483647");
  }
  expectBad("stowage.data_position", "-1", "1099511627776");
  expectBad("stowage.data_position", "9223372036854775807", "1099511627776");
}

TEST_F(CheckpointInput, CountsOfAnOptimizerThatAreNoneAreABadFile) {
  save();
  const auto setCount = [&](float count) {
    editOptimizer(
        [&](TensorFile& file) { file.find("state.wte.weight.step").bytes = countOf(count); });
  };
  for (const float count : {-1.0f, 2.5f, 1e20f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    setCount(count);
    expectRefused(ir::ErrorCode::kParse, "tensor 'state.wte.weight.step' is ");
  }
  setCount(7);
  expectRefused(ir::ErrorCode::kPlanMismatch, "'wte.weight': found 3, the checkpoint has 7");
}

TEST_F(CheckpointInput, WhatCouldNotBeReadIsNotWritten) {
  Process process(smallPlan());
  process.train(0, 1);
  for (const int64_t position : {runtime::kMostBatches + 1, std::numeric_limits<int64_t>::max()}) {
    const std::string text = ir::describe(process.runner->save(path("out"), position));
    EXPECT_NE(text.find(" batches for a checkpoint, expected 0 to "), std::string::npos) << text;
  }
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

}  // namespace
}  // namespace stowage::tests
