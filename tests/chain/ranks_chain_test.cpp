// SPDX-License-Identifier: Apache-2.0
//
// `stowage run --ranks` beside plain libtorch: example models trained by several processes, each in
// a share of what it needs, have the losses, parameters, buffers and optimizer state of as many
// plain modules whose gradients are averaged in rank order.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "planner/targets/roofline.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/state_io.h"
#include "runtime/checkpoint/state_names.h"
#include "runtime/torch/deterministic_mode.h"
#include "runtime/torch/rng_keeper.h"
#include "runtime/torch/torch_types.h"
#include "runtime/training/module_state.h"
#include "runtime/training/step_timer.h"
#include "runtime/training/training_record.h"
#include "tests/support/or_fail.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tensor_file.h"
#include "tools/training/model_step.h"

namespace stowage::tests {
namespace {

constexpr int64_t kSteps = 6;
constexpr uint64_t kSeed = 5;

using Batch = std::vector<at::Tensor>;

std::vector<uint8_t> bytesOfTensor(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  const auto* begin = static_cast<const uint8_t*>(flat.data_ptr());
  return {begin, begin + flat.nbytes()};
}

/// One plain module, with the generator of its process.
struct PlainRank {
  tools::TrainingStep training;
  std::vector<uint8_t> generator;
};

/// The mean of all ranks' gradients, added in rank order, in float32 where they are narrower.
void averageGradients(std::vector<PlainRank>& ranks) {
  std::vector<std::vector<at::Tensor>> gradients;  // by rank, then by parameter
  for (const PlainRank& rank : ranks) {
    gradients.emplace_back();
    for (const at::Tensor& parameter : rank.training.module->parameters()) {
      gradients.back().push_back(parameter.grad());
    }
  }
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    if (!gradients[0][i].defined()) continue;
    at::Tensor sum = gradients[0][i].to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    for (size_t rank = 1; rank < ranks.size(); ++rank) sum.add_(gradients[rank][i]);
    sum.div_(static_cast<int64_t>(ranks.size()));
    for (auto& own : gradients) own[i].copy_(sum);
  }
}

struct Trained {
  std::vector<double> losses;                        // means over ranks
  std::map<std::string, runtime::ByteDigest> state;  // of rank 0, by storage
};

/// `batches` by position: rank r of n takes position step * n + r.
Trained trainPlainly(const tools::Recipe& recipe, size_t count, const std::vector<Batch>& batches) {
  std::vector<PlainRank> ranks(count);
  for (size_t i = 0; i < count; ++i) {
    at::manual_seed(kSeed);
    ranks[i].training = orFail(tools::makeTrainingStep(recipe.model, recipe.settings));
    runtime::seedSteps(kSeed + i);
    ranks[i].generator = orFail(runtime::readGeneratorState(c10::kCPU));
  }
  Trained trained;
  for (int64_t step = 0; step < kSteps; ++step) {
    double sum = 0;
    for (size_t i = 0; i < count; ++i) {
      orFail(runtime::writeGeneratorState(c10::kCPU, ranks[i].generator));
      const auto position = static_cast<size_t>(step) * count + i;
      const auto functions = tools::functionsOf(ranks[i].training);
      sum += functions.loss(batches.at(position)).front().item<double>();
      ranks[i].generator = orFail(runtime::readGeneratorState(c10::kCPU));
    }
    trained.losses.push_back(sum / static_cast<double>(count));
    averageGradients(ranks);
    for (PlainRank& rank : ranks) tools::functionsOf(rank.training).update();
  }
  runtime::TrainingRecord record;
  runtime::keepState(
      {.module = ranks[0].training.module, .optimizer = ranks[0].training.optimizer.get()}, record);
  trained.state.insert(record.state.begin(), record.state.end());
  return trained;
}

struct Training {
  const char* name;
  const char* recipe;
};

class RanksChain : public testing::TestWithParam<Training> {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    runtime::setDeterministicMode(true);
    recipe_ = orFail(tools::parseRecipe(GetParam().recipe));
    std::string settings;
    for (const std::string& setting : recipe_.settings) settings += " --set " + setting;
    expectYes("capture " + recipe_.model + settings + " -o " + folder_.at("step.stow"));
  }
  void expectYes(const std::string& arguments) {
    const Outcome outcome = stowage(arguments);
    ASSERT_EQ(outcome.code, 0) << arguments << '\n' << outcome.text;
  }
  std::string at(const std::string& name) const { return folder_.at(name); }

  /// Writes a batch for each step of each rank as a data file.
  std::vector<Batch> writeBatches(size_t count) {
    const auto training = orFail(tools::makeTrainingStep(recipe_.model, recipe_.settings));
    std::vector<Batch> batches;
    for (size_t i = 0; i < static_cast<size_t>(kSteps) * count; ++i) {
      batches.push_back(tools::makeInputs(training, 1000 + i));
    }
    std::vector<FileTensor> tensors;
    for (size_t input = 0; input < training.inputs.size(); ++input) {
      const tools::TrainingStep::Input& info = training.inputs[input];
      FileTensor tensor{.name = info.name,
                        .dtype = runtime::toDType(info.dtype).value(),
                        .sizes = {static_cast<int64_t>(batches.size())},
                        .bytes = {}};
      tensor.sizes.insert(tensor.sizes.end(), info.sizes.begin(), info.sizes.end());
      for (const Batch& batch : batches) {
        const std::vector<uint8_t> bytes = bytesOfTensor(batch[input]);
        tensor.bytes.insert(tensor.bytes.end(), bytes.begin(), bytes.end());
      }
      tensors.push_back(std::move(tensor));
    }
    writeTensors(at("data.safetensors"), tensors);
    return batches;
  }

  /// In a share of what a rank needs, or the smallest budget that fits.
  void plan(size_t count, int percent) {
    const std::string arguments = "plan " + at("step.stow") + " --ranks " + std::to_string(count) +
                                  " --threads 1 --time-limit 1 --costs " + at("costs.json") +
                                  " -f -q --json -o " + at("plan.json") + " --budget ";
    const Outcome outcome = stowage(arguments + std::to_string(percent) + "%peak");
    if (outcome.code == 0) return;
    const std::string key = "\"smallest_budget_bytes\": ";
    const size_t place = outcome.text.find(key);
    ASSERT_NE(place, std::string::npos) << outcome.text;
    const int64_t smallest = std::stoll(outcome.text.substr(place + key.size()));
    expectYes(arguments + std::to_string(smallest) + "B");
  }

  void expectSame(const Trained& plain, const nlohmann::json& answer, const std::string& what) {
    EXPECT_EQ(answer.at("losses").get<std::vector<double>>(), plain.losses) << what;
    EXPECT_EQ(answer.at("peak_bytes"), answer.at("predicted").at("peak_bytes")) << what;
    const auto step = orFail(tools::captureModel(
        recipe_, {.target = orFail(planner::findTargetProfile("cpu")), .seed = kSeed}));
    const std::map<std::string, std::string> names = runtime::checkpointNames(step->graph);
    const runtime::StateFiles files = orFail(runtime::StateFiles::open(
        {at("saved") + "/" + runtime::kModelFile, at("saved") + "/" + runtime::kOptimizerFile}));
    for (const auto& [storage, digest] : plain.state) {
      const auto named = names.find(storage);
      const runtime::SafetensorsEntry* entry =
          files.find(named == names.end() ? storage : named->second);
      if (entry == nullptr) {
        ADD_FAILURE() << what << ": the checkpoint has no '" << storage << "'";
        continue;
      }
      std::vector<uint8_t> bytes(static_cast<size_t>(entry->bytes.end - entry->bytes.begin));
      orFail(files.readEntry(*entry, bytes));
      EXPECT_TRUE(runtime::digestOf(bytes) == digest) << what << ": '" << storage << "'";
    }
  }

  ScratchFolder folder_{"stowage_ranks"};
  tools::Recipe recipe_;
};

TEST_P(RanksChain, TrainsAsPlainModulesDo) {
  for (const size_t count : {2U, 3U, 4U}) {
    const std::string ranks = " --ranks " + std::to_string(count) + " --threads 1 ";
    expectYes("profile " + at("step.stow") + ranks + "-f -o " + at("costs.json"));
    const std::vector<Batch> batches = writeBatches(count);
    const Trained plain = trainPlainly(recipe_, count, batches);
    // Every budget with two ranks; others have the same schedules, of other sizes.
    for (const int percent : count == 2 ? std::vector{100, 60, 40} : std::vector{60}) {
      const std::string what = std::to_string(count) + " ranks, " + std::to_string(percent) + " %";
      ASSERT_NO_FATAL_FAILURE(plan(count, percent)) << what;
      const Outcome outcome =
          stowage("run " + at("plan.json") + ranks + "-f -q --json --costs " + at("costs.json") +
                  " --steps " + std::to_string(kSteps) + " --seed " + std::to_string(kSeed) +
                  " --data " + at("data.safetensors") + " --save " + at("saved"));
      ASSERT_EQ(outcome.code, 0) << what << '\n' << outcome.text;
      expectSame(plain, nlohmann::json::parse(outcome.text), what);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RanksChain,
    testing::Values(Training{"gpt2_dropout", "gpt2 layers=2 dropout=0.1 schedule=step"},
                    Training{"llama_master",
                             "llama layers=2 precision=bfloat16 optimizer=stowage_adamw "
                             "master_weights=on micro_batches=2"},
                    Training{"llama_lora_autocast", "llama_lora layers=2 precision=autocast"},
                    Training{"vit_momentum", "vit optimizer=sgd"},
                    Training{"resnet", "resnet micro_batches=2"}, Training{"lstm", "lstm"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stowage::tests
