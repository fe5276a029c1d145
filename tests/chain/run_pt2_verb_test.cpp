// SPDX-License-Identifier: Apache-2.0
//
// An exported step from archive to checkpoint by the program alone: capture, profile, plan, run. On
// a small archive written here, with and without weights inside, with a rate that is an input and
// one that is frozen. That the planned ops give what the archive's own calls give is shown in
// pt2_chain_test.cpp.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/small_pt2.h"
#include "tests/support/tensor_file.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kWeight = "net.fc.weight";
constexpr int kFloat = 7;

/// The program with the rate as a number.
json frozenRateProgram() {
  json program = smallStepProgram();
  json& nodes = program["graph_module"]["graph"]["nodes"];
  for (json& node : nodes) {
    if (node["target"] != "torch.ops.aten._fused_adamw_.tensor_lr") continue;
    node["target"] = "torch.ops.aten._fused_adamw_.default";
    for (json& input : node["inputs"]) {
      if (input["name"] == "lr") input["arg"] = {{"as_float", 0.001}};
    }
  }
  return program;
}

/// Six floats as the archive's own weight.
std::string packWithWeights(const std::vector<float>& values, bool pickled = false) {
  const json index = {{"config",
                       {{kWeight,
                         {{"path_name", "weight_0"},
                          {"is_param", true},
                          {"use_pickle", pickled},
                          {"tensor_meta", tensorMeta(kFloat, {3, 2}, {2, 1})}}}}}};
  return packZip({{"models/model.json", smallStepProgram().dump()},
                  {"archive_format", "pt2"},
                  {"archive_version", "0"},
                  {"data/weights/model_weights_config.json", index.dump()},
                  {"data/weights/weight_0",
                   {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}}});
}

json lossesOf(const Outcome& outcome) {
  return json::parse(outcome.text, nullptr, /*allow_exceptions=*/false).value("losses", json());
}

class RunPt2Verb : public testing::Test {
 protected:
  RunPt2Verb() : folder_("stowage_run_pt2") {}

  /// Everything up to the plan, from an archive of this content.
  void prepare(const std::string& archive) {
    writeText(folder_.at("small.pt2"), archive);
    writeText(folder_.at("small.json"), smallStepSideFile());
    expectYes("capture " + folder_.at("small.pt2") + " -f -o " + folder_.at("small.stow"));
    expectYes("profile " + folder_.at("small.stow") + " -f -o " + folder_.at("costs.json"));
    expectYes("plan " + folder_.at("small.stow") + " --budget 100%peak --costs " +
              folder_.at("costs.json") + " -f -o " + folder_.at("plan.json"));
  }
  void expectYes(const std::string& arguments) {
    const Outcome outcome = stowage(arguments);
    ASSERT_EQ(outcome.code, 0) << arguments << '\n' << outcome.text;
  }
  Outcome run(const std::string& arguments) const {
    return stowage("run " + folder_.at("plan.json") + " " + arguments);
  }

  ScratchFolder folder_;
};

TEST_F(RunPt2Verb, RunsAStepWithoutWeightsOnRandomOnes) {
  prepare(packPt2(smallStepProgram().dump()));
  const Outcome outcome = run("--steps 5 --lr 0.01 --random-weights --compare-unplanned");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says("random first values")) << outcome.text;
  EXPECT_TRUE(outcome.says("identical bits to the unplanned run")) << outcome.text;
  EXPECT_TRUE(outcome.says("0 allocations outside")) << outcome.text;
}

TEST_F(RunPt2Verb, SaysWhatIsMissingAndWhichFlagGivesIt) {
  prepare(packPt2(smallStepProgram().dump()));
  const Outcome rate = run("--random-weights");
  EXPECT_EQ(rate.code, 2) << rate.text;
  EXPECT_TRUE(rate.says("learning rate 'lr' as an input: --lr gives")) << rate.text;
  const Outcome weights = run("--lr 0.01");
  EXPECT_EQ(weights.code, 2) << weights.text;
  EXPECT_TRUE(weights.says("small.pt2 does not hold them; --weights names")) << weights.text;
  EXPECT_TRUE(weights.says("missing: 'net.fc.weight'")) << weights.text;
  fs::remove(folder_.at("small.pt2"));
  const Outcome archive = run("--lr 0.01");
  EXPECT_EQ(archive.code, 2) << archive.text;
  EXPECT_TRUE(archive.says("there is no " + folder_.at("small.pt2"))) << archive.text;
}

TEST_F(RunPt2Verb, BeginsWithTheArchivesWeights) {
  const std::vector<float> values = {1, -2, 3, -4, 5, -6};
  prepare(packWithWeights(values));
  const Outcome own = run("--steps 3 --lr 0.01 -q --json --compare-unplanned");
  ASSERT_EQ(own.code, 0) << own.text;
  writeTensors(folder_.at("w.safetensors"), {{kWeight, ir::DType::kF32, {3, 2}, bytesOf(values)}});
  const Outcome file = run("--steps 3 --lr 0.01 -q --json --compare-unplanned --weights " +
                           folder_.at("w.safetensors"));
  ASSERT_EQ(file.code, 0) << file.text;
  EXPECT_EQ(lossesOf(own), lossesOf(file));
  const Outcome random = run("--steps 3 --lr 0.01 -q --json --random-weights");
  EXPECT_NE(lossesOf(own), lossesOf(random));

  writeText(folder_.at("small.pt2"), packWithWeights({1, 1, 1, 1, 1, 1}));
  const Outcome other = run("--lr 0.01");
  EXPECT_EQ(other.code, 3) << other.text;
  EXPECT_TRUE(other.says("small.pt2: found the archive xxh64:")) << other.text;
}

TEST_F(RunPt2Verb, FindsTheArchiveWhereItIsSaid) {
  prepare(packWithWeights({1, -2, 3, -4, 5, -6}));
  fs::rename(folder_.at("small.pt2"), folder_.at("moved.pt2"));
  EXPECT_EQ(run("--steps 1 --lr 0.01").code, 2);
  const Outcome moved = run("--steps 1 --lr 0.01 --archive " + folder_.at("moved.pt2"));
  EXPECT_EQ(moved.code, 0) << moved.text;
  EXPECT_EQ(run("--steps 1 --lr 0.01 --archive " + folder_.at("nowhere.pt2")).code, 3);
}

TEST_F(RunPt2Verb, RefusesBadWeightsInTheArchive) {
  prepare(packWithWeights({1, -2, 3, -4}));
  const Outcome few = run("--lr 0.01");
  EXPECT_EQ(few.code, 3) << few.text;
  EXPECT_TRUE(few.says("has 16 bytes, tensor 'net.fc.weight' needs 24")) << few.text;
  prepare(packWithWeights({1, -2, 3, -4, 5, -6}, /*pickled=*/true));
  const Outcome pickled = run("--lr 0.01");
  EXPECT_EQ(pickled.code, 3) << pickled.text;
  EXPECT_TRUE(pickled.says("kept as a pickle")) << pickled.text;
}

TEST_F(RunPt2Verb, TakesRatesFromTheDataFile) {
  prepare(packPt2(smallStepProgram().dump()));
  const auto floats = [](size_t count, float value) {
    return bytesOf(std::vector<float>(count, value));
  };
  writeTensors(folder_.at("d.safetensors"),
               {{"batch.0", ir::DType::kF32, {2, 4, 3}, floats(24, 0.5F)},
                {"batch.1", ir::DType::kF32, {2, 4, 2}, floats(16, 0.25F)},
                {"lr", ir::DType::kF32, {2}, bytesOf(std::vector<float>{0.5F, 0.25F})}});
  const std::string common =
      "--steps 4 --random-weights -q --json --data " + folder_.at("d.safetensors");
  const Outcome scheduled = run(common + " --compare-unplanned");
  EXPECT_EQ(scheduled.code, 0) << scheduled.text;
  const Outcome constant = run(common + " --lr 0.5");
  EXPECT_EQ(constant.code, 0) << constant.text;
  EXPECT_NE(lossesOf(scheduled), lossesOf(constant));
}

TEST_F(RunPt2Verb, ItsOpsAreTimedInStepsWithoutWeightsOrRates) {
  prepare(packPt2(smallStepProgram().dump()));
  const Outcome outcome = stowage("profile " + folder_.at("small.stow") +
                                  " --in-steps 100%peak -f -o " + folder_.at("costs.json"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says("in steps   within ")) << outcome.text;
}

TEST_F(RunPt2Verb, RefusesARateForAFrozenOne) {
  prepare(packPt2(frozenRateProgram().dump()));
  const Outcome given = run("--random-weights --lr 0.01");
  EXPECT_EQ(given.code, 2) << given.text;
  EXPECT_TRUE(given.says("--lr: the learning rate of this step is frozen")) << given.text;
  const Outcome frozen = run("--random-weights --steps 2");
  EXPECT_EQ(frozen.code, 0) << frozen.text;
}

TEST_F(RunPt2Verb, GoesOnFromACheckpoint) {
  prepare(packWithWeights({1, -2, 3, -4, 5, -6}));
  ASSERT_EQ(run("--steps 3 --lr 0.01 --save " + folder_.at("out")).code, 0);
  const Outcome second =
      run("--steps 2 --lr 0.01 --compare-unplanned --resume " + folder_.at("out"));
  EXPECT_EQ(second.code, 0) << second.text;
  EXPECT_TRUE(second.says("resumed    after 3 steps")) << second.text;
  EXPECT_TRUE(second.says("identical bits")) << second.text;
}

TEST_F(RunPt2Verb, ACheckpointHasTheRateOfItsTraining) {
  prepare(packWithWeights({1, -2, 3, -4, 5, -6}));
  ASSERT_EQ(run("--steps 3 --lr 0.01 --save " + folder_.at("out")).code, 0);
  const std::string resume = "--steps 2 -q --json --resume " + folder_.at("out");
  const Outcome without = run(resume);
  const Outcome with = run(resume + " --lr 1e-2");
  EXPECT_EQ(without.code, 0) << without.text;
  EXPECT_EQ(with.code, 0) << with.text;
  EXPECT_EQ(lossesOf(without), lossesOf(with));
  const Outcome other = run("--steps 2 --lr 0.02 --resume " + folder_.at("out"));
  EXPECT_EQ(other.code, 3) << other.text;
  EXPECT_TRUE(other.says("learning_rate: found 0.02, expected 0.01")) << other.text;
}

}  // namespace
}  // namespace stowage::tests
