// SPDX-License-Identifier: Apache-2.0
//
// The example models built without memory: their first values, made by running the record of the
// construction, against those of ordinary construction, byte for byte; and what a model of eight
// billion parameters costs to capture.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "planner/targets/roofline.h"
#include "tools/training/model_step.h"

namespace stowage::tools {
namespace {

constexpr uint64_t kSeed = 23;

std::unique_ptr<ModelStep> capture(const Recipe& recipe, const char* profile) {
  ir::Expected<ir::Target> target = planner::findTargetProfile(profile);
  EXPECT_TRUE(static_cast<bool>(target));
  auto step = captureModel(recipe, {.target = *target, .seed = kSeed, .withoutMemory = true});
  EXPECT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  return step ? std::move(*step) : nullptr;
}

/// Parameters and buffers of ordinary construction.
std::map<std::string, at::Tensor> constructEagerly(const Recipe& recipe) {
  at::manual_seed(kSeed);
  ir::Expected<TrainingStep> training = makeTrainingStep(recipe.model, recipe.settings);
  EXPECT_TRUE(static_cast<bool>(training));
  std::map<std::string, at::Tensor> values;
  for (const auto& item : training->module->named_parameters()) values[item.key()] = item.value();
  for (const auto& item : training->module->named_buffers()) values[item.key()] = item.value();
  return values;
}

at::Tensor generatorState() { return at::detail::getDefaultCPUGenerator().get_state(); }

class CaptureConstruction : public testing::TestWithParam<Recipe> {};

TEST_P(CaptureConstruction, ReplaysToTheBytesOfOrdinaryConstruction) {
  std::map<std::string, at::Tensor> expected = constructEagerly(GetParam());
  const at::Tensor stateAfter = generatorState();
  const std::unique_ptr<ModelStep> step = capture(GetParam(), "cpu");
  ASSERT_NE(step, nullptr);
  at::manual_seed(1);  // replay starts from the state that construction had
  size_t delivered = 0;
  ir::Error error = step->captured->replayConstruction(
      [](ir::StorageId) { return true; },
      [&](ir::StorageId id, const at::Tensor& bytes) {
        const std::string& name = step->captured->graph().storage(id).name;
        const auto found = expected.find(name);
        if (found == expected.end()) return ir::success();
        ++delivered;
        const at::Tensor dense = found->second.contiguous();
        EXPECT_EQ(dense.nbytes(), bytes.nbytes()) << name;
        EXPECT_EQ(std::memcmp(dense.const_data_ptr(), bytes.const_data_ptr(), bytes.nbytes()), 0)
            << name;
        return ir::success();
      });
  ASSERT_FALSE(static_cast<bool>(error)) << ir::describe(std::move(error));
  EXPECT_EQ(delivered, expected.size());
  EXPECT_TRUE(stateAfter.equal(generatorState()));
}

INSTANTIATE_TEST_SUITE_P(
    Models, CaptureConstruction,
    testing::Values(Recipe{"gpt2", {}}, Recipe{"llama", {"precision=bfloat16"}},
                    Recipe{"resnet", {}}, Recipe{"lstm", {}}, Recipe{"llama_lora", {}},
                    Recipe{"llama_lora", {"quantise=nf4", "precision=bfloat16"}}),
    [](const auto& info) { return info.param.model + "_" + std::to_string(info.index); });

TEST(CaptureConstructions, AnotherSeedGivesOtherBytes) {
  std::map<std::string, at::Tensor> expected = constructEagerly({"gpt2", {}});
  at::manual_seed(kSeed + 1);
  const auto other = makeTrainingStep("gpt2", {});
  EXPECT_FALSE(other->module->named_parameters()["wte.weight"].equal(expected["wte.weight"]));
}

int64_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * 4096;
}

TEST(CaptureConstructions, AModelOfEightBillionParametersTakesLittleMemory) {
  capture({"llama", {}}, "h200");  // what libtorch sets up once
  const int64_t before = residentBytes();
  const std::unique_ptr<ModelStep> step =
      capture({"llama", {"preset=llama3.1-8b", "batch=1", "sequence=8192"}}, "h200");
  ASSERT_NE(step, nullptr);
  int64_t state = 0;
  for (const ir::Storage& storage : step->graph.storages()) {
    if (storage.persistent) state += storage.bytes.value();
  }
  EXPECT_GT(state, int64_t{85} << 30);  // parameters and two moments in float32
  EXPECT_LT(residentBytes() - before, int64_t{200} << 20);
}

}  // namespace
}  // namespace stowage::tools
