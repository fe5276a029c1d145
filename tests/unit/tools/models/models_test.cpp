// SPDX-License-Identifier: Apache-2.0
#include "tools/models/model.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "tests/support/dispatch_spy.h"
#include "tools/models/nf4.h"

namespace stowage::tools {
namespace {

using Texts = std::vector<std::string>;

TrainingStep makeStep(const std::string& model, const Texts& settings, uint64_t seed = 1) {
  at::set_num_threads(1);  // these sizes are too small to share
  at::manual_seed(seed);
  return llvm::cantFail(makeTrainingStep(model, settings));
}

/// The losses of `count` steps on the same batch.
std::vector<double> train(const TrainingStep& step, int count) {
  const std::vector<at::Tensor> inputs = makeInputs(step, 3);
  std::vector<double> losses;
  for (int i = 0; i < count; ++i) {
    const std::vector<at::Tensor> reported = step.loss(inputs);
    EXPECT_EQ(reported.size(), 1U);
    EXPECT_EQ(reported[0].dim(), 0);
    EXPECT_FALSE(reported[0].requires_grad());
    losses.push_back(reported[0].item<double>());
    step.update();
  }
  return losses;
}

int64_t countParameters(const TrainingStep& step, bool trainedOnly = false) {
  int64_t count = 0;
  for (const at::Tensor& parameter : step.module->parameters()) {
    if (parameter.requires_grad() || !trainedOnly) count += parameter.numel();
  }
  return count;
}

double learningRate(const TrainingStep& step) {
  return step.optimizer->param_groups()[0].options().get_lr();
}

Texts modelNames() {
  Texts names;
  for (const ModelInfo& model : modelCatalogue()) names.push_back(model.name);
  return names;
}

/// Ways to train each model.
std::vector<Texts> waysToTrain(const std::string& model) {
  // Adapters and unrolled cells have small gradients at first.
  const std::string sgdRate = model == "llama_lora" || model == "lstm" ? "lr=1" : "lr=0.05";
  std::vector<Texts> ways = {
      {},
      {"optimizer=sgd", sgdRate},
      {"optimizer=stowage_adamw", "schedule=cosine", "warmup=1"},
      {"precision=bfloat16", "optimizer=stowage_adamw", "master_weights=on"},
      {"precision=autocast", "clip=1", "schedule=step"},
      {"micro_batches=2", "precision=bfloat16", "clip=1"},
  };
  if (model == "llama_lora") {
    ways.push_back({"quantise=nf4", "precision=bfloat16", "clip=1"});
    ways.push_back({"quantise=nf4", "precision=autocast"});
  }
  return ways;
}

class EveryModel : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryModel, LossFallsAndRepeatsBitForBit) {
  for (const Texts& settings : waysToTrain(GetParam())) {
    SCOPED_TRACE(::testing::PrintToString(settings));
    const std::vector<double> losses = train(makeStep(GetParam(), settings), 5);
    EXPECT_LT(losses.back(), losses.front() - 0.01);
    EXPECT_EQ(losses, train(makeStep(GetParam(), settings), 5));
  }
}

/// What one closure called: a line per operation.
using Log = std::vector<std::string>;

Log namesIn(Log log) {
  for (std::string& line : log) line.resize(std::min(line.size(), line.find(' ')));
  return log;
}

TEST_P(EveryModel, CallsTheSameOperationsInEveryStepAndReadsNoValueInTheLoss) {
  for (const Texts& settings : waysToTrain(GetParam())) {
    SCOPED_TRACE(::testing::PrintToString(settings));
    const TrainingStep step = makeStep(GetParam(), settings);
    const std::vector<at::Tensor> inputs = makeInputs(step, 3);
    std::vector<Log> losses(4), updates(4);
    for (int i = 0; i < 4; ++i) {
      {
        const tests::SpyGuard guard(tests::logInto(losses[i]));
        (void)step.loss(inputs);
      }
      const tests::SpyGuard guard(tests::logInto(updates[i]));
      step.update();
    }
    EXPECT_EQ(losses[1], losses[2]);
    EXPECT_EQ(losses[2], losses[3]);
    for (const std::string& line : losses[3]) {
      EXPECT_EQ(line.find("item"), std::string::npos) << line;
      EXPECT_EQ(line.find("_local_scalar_dense"), std::string::npos) << line;
    }
    // Numbers may differ here, the operations may not.
    EXPECT_EQ(namesIn(updates[2]), namesIn(updates[3]));
    for (const at::Tensor& parameter : step.module->parameters()) {
      EXPECT_FALSE(parameter.grad().defined());
    }
  }
}

std::string nameOf(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(All, EveryModel, ::testing::ValuesIn(modelNames()), nameOf);

TEST(Models, ParameterCountsAreThePublishedOnes) {
  struct Count {
    const char* model;
    const char* preset;
    int64_t parameters;
  };
  const Count counts[] = {
      {"gpt2", "small", 124'439'808},
      {"gpt2", "medium", 354'823'168},
      {"gpt2", "large", 774'030'080},
      {"gpt2", "demo", 25'482'240},
      {"llama", "llama3.2-1b", 1'235'814'400},
      {"llama", "llama3.1-8b", 8'030'261'248},
      {"llama", "llama3-70b", 70'553'706'496},
      {"vit", "b16", 86'567'656},
      {"vit", "l16", 304'326'632},
      {"resnet", "resnet50", 25'557'032},
      {"resnet", "resnet152", 60'192'808},
  };
  const tests::SpyGuard withoutMemory(tests::onMetaDevice());
  for (const auto& [model, preset, parameters] : counts) {
    const TrainingStep step = llvm::cantFail(
        makeTrainingStep(model, {std::string("preset=") + preset}, at::Device(at::kMeta)));
    EXPECT_EQ(countParameters(step), parameters) << model << " " << preset;
  }
}

TEST(Models, TinyOnesAreSmall) {
  for (const std::string& model : modelNames()) {
    EXPECT_LT(countParameters(makeStep(model, {"preset=tiny"})), 2'000'000) << model;
  }
}

TEST(Models, ParametersHaveTheNamesOfPublishedCheckpoints) {
  const std::pair<const char*, std::vector<const char*>> names[] = {
      {"gpt2",
       {"wte.weight", "wpe.weight", "h.1.attn.c_attn.weight", "h.0.mlp.c_proj.bias", "ln_f.bias"}},
      {"llama",
       {"model.embed_tokens.weight", "model.layers.1.self_attn.k_proj.weight",
        "model.layers.0.mlp.gate_proj.weight", "model.layers.0.input_layernorm.weight",
        "model.layers.0.post_attention_layernorm.weight", "model.norm.weight", "lm_head.weight"}},
      {"vit",
       {"cls_token", "pos_embed", "patch_embed.proj.bias", "blocks.1.attn.qkv.weight",
        "head.bias"}},
      {"resnet", {"conv1.weight", "layer4.0.downsample.1.bias", "layer1.0.bn3.weight", "fc.bias"}},
  };
  for (const auto& [model, expected] : names) {
    const TrainingStep step = makeStep(model, {});
    const auto parameters = step.module->named_parameters();
    for (const char* name : expected)
      EXPECT_TRUE(parameters.contains(name)) << model << " " << name;
  }
  const TrainingStep step = makeStep("gpt2", {});  // linear layers are stored [in, out]
  EXPECT_EQ(step.module->named_parameters()["h.0.mlp.c_fc.weight"].sizes(),
            at::IntArrayRef({128, 512}));
}

class LanguageModels : public ::testing::TestWithParam<const char*> {};

/// The loss of token `position` of row 0 alone: targets of -100 do not count.
double lossAt(const TrainingStep& step, std::vector<at::Tensor> inputs, int64_t position) {
  const at::Tensor target = inputs[1][0][position].clone();
  inputs[1] = at::full_like(inputs[1], -100);
  inputs[1][0][position] = target;
  return step.loss(inputs)[0].item<double>();
}

TEST_P(LanguageModels, SeeThePastInItsOrderAndNoFuture) {
  const TrainingStep step = makeStep(GetParam(), {});
  step.module->eval();
  const std::vector<at::Tensor> inputs = makeInputs(step, 3);
  const double loss = lossAt(step, inputs, 5);

  std::vector<at::Tensor> otherFuture = {inputs[0].clone(), inputs[1]};
  otherFuture[0].narrow(1, 6, 4).fill_(1);
  EXPECT_EQ(lossAt(step, otherFuture, 5), loss);

  std::vector<at::Tensor> otherPast = {inputs[0].clone(), inputs[1]};
  otherPast[0].narrow(1, 2, 1).fill_(1);
  EXPECT_NE(lossAt(step, otherPast, 5), loss);

  std::vector<at::Tensor> swapped = {inputs[0].clone(), inputs[1]};
  swapped[0][0][1] = inputs[0][0][2];
  swapped[0][0][2] = inputs[0][0][1];
  EXPECT_NE(lossAt(step, swapped, 5), loss);
}

INSTANTIATE_TEST_SUITE_P(All, LanguageModels,
                         ::testing::Values("gpt2", "llama", "llama_lora", "lstm"));

TEST(Models, MicroBatchesGiveTheGradientOfTheWholeBatch) {
  const auto gradients = [](const char* parts) {
    const TrainingStep step =
        makeStep("gpt2", {"dropout=0", std::string("micro_batches=") + parts});
    (void)step.loss(makeInputs(step, 3));
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : step.module->parameters()) all.push_back(parameter.grad());
    return all;
  };
  const auto whole = gradients("1"), parts = gradients("4");
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(at::allclose(whole[i], parts[i], 1e-4, 1e-6)) << i;
  }
}

TEST(Models, CheckpointedBlocksTrainWithTheSameBits) {
  for (const char* model : {"llama", "llama_lora"}) {
    const std::vector<double> kept = train(makeStep(model, {"clip=1"}), 4);
    EXPECT_EQ(train(makeStep(model, {"clip=1", "checkpointing=on"}), 4), kept) << model;
    EXPECT_LT(kept.back(), kept.front());
  }
}

TEST(Models, TiedOutputsHaveOneMatrixLess) {
  EXPECT_EQ(
      countParameters(makeStep("llama", {})) - countParameters(makeStep("llama", {"tied=on"})),
      256 * 128);
}

TEST(Models, FrozenWeightsNeverChangeAndAdaptersDo) {
  for (const char* quantise : {"quantise=none", "quantise=nf4"}) {
    const TrainingStep step = makeStep("llama_lora", {"lora_rank=4", quantise});
    std::vector<at::Tensor> before;
    for (const at::Tensor& parameter : step.module->parameters()) {
      before.push_back(parameter.detach().clone());
    }
    train(step, 2);
    size_t i = 0, trained = 0;
    for (const auto& item : step.module->named_parameters()) {
      const bool isAdapter = item.key().find("lora_") != std::string::npos;
      EXPECT_EQ(item.value().requires_grad(), isAdapter) << item.key();
      EXPECT_EQ(!at::equal(item.value(), before[i++]), isAdapter) << item.key();
      trained += isAdapter ? 1 : 0;
    }
    EXPECT_EQ(trained, 2U * 2 * 7);  // A and B of seven projections in two layers
    EXPECT_EQ(step.optimizer->param_groups()[0].params().size(), trained);
  }
}

/// In place, the weights of projections that a 4-bit code can hold.
void roundToNf4(const TrainingStep& step) {
  for (const auto& item : step.module->named_parameters()) {
    if (item.key().find("_proj.weight") == std::string::npos) continue;
    const at::Tensor weight = item.value().detach();
    weight.copy_(dequantise(quantise(weight), nf4Pairs(), weight.sizes()));
  }
}

TEST(Models, WeightsInFourBitsTrainAsTheValuesThatTheyStandFor) {
  const TrainingStep rounded = makeStep("llama_lora", {});
  roundToNf4(rounded);
  const std::vector<double> losses = train(makeStep("llama_lora", {"quantise=nf4"}), 4);
  EXPECT_EQ(losses, train(rounded, 4));
  EXPECT_NE(losses, train(makeStep("llama_lora", {}), 4));
}

TEST(Models, WeightsInFourBitsTakeALittleMore) {
  const auto bits = [](const char* precision) {
    const std::string setting = std::string("precision=") + precision;
    size_t bytes = 0;
    for (const auto& item :
         makeStep("llama_lora", {"quantise=nf4", setting}).module->named_parameters()) {
      if (item.key().find("_proj.weight") != std::string::npos) bytes += item.value().nbytes();
    }
    int64_t weights = 0;
    for (const auto& item : makeStep("llama", {}).module->named_parameters()) {
      if (item.key().find("_proj.weight") != std::string::npos) weights += item.value().numel();
    }
    return static_cast<double>(bytes) * 8 / static_cast<double>(weights);
  };
  EXPECT_EQ(bits("float32"), 4.5);
  EXPECT_EQ(bits("bfloat16"), 4.25);
}

TEST(Models, AdaptersStartAsNoChange) {
  const auto loss = [](const char* model) {
    const TrainingStep step = makeStep(model, {});
    const at::NoGradGuard guard;
    for (const auto& item : step.module->named_parameters()) {
      if (item.key().find("lora_") == std::string::npos) item.value().fill_(0.01);
    }
    const at::AutoGradMode enable(true);
    return step.loss(makeInputs(step, 3))[0].item<double>();
  };
  EXPECT_EQ(loss("llama"), loss("llama_lora"));
}

TEST(Models, BatchNormKeepsRunningStatistics) {
  const TrainingStep step = makeStep("resnet", {});
  train(step, 2);
  const auto buffers = step.module->named_buffers();
  EXPECT_EQ(buffers["bn1.num_batches_tracked"].item<int64_t>(), 2);
  EXPECT_FALSE(at::equal(buffers["bn1.running_mean"], at::zeros({16})));
}

TEST(Models, PrecisionsMeanWhatTheySay) {
  const auto dtype = [](const char* precision) {
    const TrainingStep step = makeStep("gpt2", {std::string("precision=") + precision});
    return step.module->parameters()[0].scalar_type();
  };
  EXPECT_EQ(dtype("float32"), at::kFloat);
  EXPECT_EQ(dtype("bfloat16"), at::kBFloat16);
  EXPECT_EQ(dtype("autocast"), at::kFloat);
  const double exact = train(makeStep("vit", {}), 1)[0];
  const double cast = train(makeStep("vit", {"precision=autocast"}), 1)[0];
  EXPECT_NE(exact, cast);
  EXPECT_NEAR(exact, cast, 0.02);
  EXPECT_EQ(exact, train(makeStep("vit", {}), 1)[0]) << "autocast outlived its scope";
}

TEST(Models, SchedulesSetTheLearningRate) {
  const auto rates = [](const Texts& settings) {
    const TrainingStep step = makeStep("vit", settings);
    std::vector<double> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(learningRate(step));
      train(step, 1);
    }
    return all;
  };
  EXPECT_EQ(rates({"lr=1"}), std::vector<double>({1, 1, 1, 1}));
  EXPECT_EQ(
      rates({"lr=1", "schedule=step", "decay_every=2", "decay_factor=0.5"}),
      std::vector<double>({1, 1, 1, 0.5}));  // libtorch's first step() counts and decays nothing
  const auto cosine = rates({"lr=1", "schedule=cosine", "warmup=1", "horizon=2"});
  const std::vector<double> expected = {0.5, 1, 0.5, 0};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(cosine[i], expected[i], 1e-12) << i;
}

TEST(Models, ClippingBoundsTheNormOfAllGradients) {
  // With plain SGD of rate 1 the step is the gradient: its length is the norm that clipping leaves.
  const TrainingStep step =
      makeStep("gpt2", {"optimizer=sgd", "lr=1", "momentum=0", "weight_decay=0", "clip=0.125"});
  std::vector<at::Tensor> before;
  for (const at::Tensor& parameter : step.module->parameters()) before.push_back(parameter.clone());
  train(step, 1);
  double squares = 0;
  size_t i = 0;
  for (const at::Tensor& parameter : step.module->parameters()) {
    squares += (parameter - before[i++]).square().sum().item<double>();
  }
  EXPECT_NEAR(std::sqrt(squares), 0.125, 1e-3);
}

TEST(Models, InputsAreReproducibleInRangeAndLeaveTheDefaultGeneratorAlone) {
  const TrainingStep step = makeStep("gpt2", {"batch=64"});
  at::manual_seed(5);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(5);
  const auto inputs = makeInputs(step, 3);
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
  ASSERT_EQ(inputs.size(), step.inputs.size());
  EXPECT_TRUE(at::equal(inputs[0], makeInputs(step, 3)[0]));
  EXPECT_FALSE(at::equal(inputs[0], makeInputs(step, 4)[0]));
  EXPECT_EQ(inputs[0].scalar_type(), at::kLong);
  EXPECT_EQ(inputs[0].sizes(), at::IntArrayRef({64, 64}));
  EXPECT_EQ(inputs[0].min().item<int64_t>(), 0);
  EXPECT_EQ(inputs[0].max().item<int64_t>(), 255);
}

}  // namespace
}  // namespace stowage::tools
