// SPDX-License-Identifier: Apache-2.0
//
// GPT-2: pre-norm blocks, learned positions, GELU (tanh), dropout in three places, and an output
// matrix that is the embedding itself, so one parameter gets gradients from both ends of the
// network. Parameter names and shapes are those of the published checkpoints (linear layers stored
// [in, out]). With vocabulary=256 it is a language model over bytes. Source: Radford et al.,
// "Language Models are Unsupervised Multitask Learners", 2019, section 2.3.
#include <torch/nn/init.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>

#include "tools/models/recipe.h"

namespace stowage::tools {
namespace {

struct Gpt2Config {
  int64_t vocabulary, context, layers, hidden, heads;
  double dropout;
};

/// y = x W + b with W stored [in, out].
class ProjectionImpl : public torch::nn::Module {
 public:
  ProjectionImpl(int64_t in, int64_t out, double deviation) {
    weight_ = register_parameter("weight", torch::empty({in, out}));
    bias_ = register_parameter("bias", torch::zeros({out}));
    torch::nn::init::normal_(weight_, 0.0, deviation);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const int64_t in = weight_.size(0), out = weight_.size(1);
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = out;
    return torch::addmm(bias_, x.reshape({-1, in}), weight_).view(sizes);
  }

 private:
  torch::Tensor weight_, bias_;
};
TORCH_MODULE(Projection);

class AttentionImpl : public torch::nn::Module {
 public:
  AttentionImpl(const Gpt2Config& config, double residualDeviation)
      : heads_(config.heads), dropout_(config.dropout) {
    cAttn_ = register_module("c_attn", Projection(config.hidden, 3 * config.hidden, 0.02));
    cProj_ = register_module("c_proj", Projection(config.hidden, config.hidden, residualDeviation));
    residualDropout_ = register_module("resid_dropout", torch::nn::Dropout(config.dropout));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const auto heads =
        [&](const torch::Tensor& t) {  // [batch, tokens, hidden] -> [batch, head, tokens, width]
          return t.view({t.size(0), t.size(1), heads_, -1}).transpose(1, 2);
        };
    const auto parts = cAttn_(x).chunk(3, -1);
    const torch::Tensor mixed = torch::scaled_dot_product_attention(
        heads(parts[0]), heads(parts[1]), heads(parts[2]), /*attn_mask=*/{},
        is_training() ? dropout_ : 0.0, /*is_causal=*/true);
    return residualDropout_(cProj_(mixed.transpose(1, 2).flatten(2)));
  }

 private:
  int64_t heads_;
  double dropout_;
  Projection cAttn_{nullptr}, cProj_{nullptr};
  torch::nn::Dropout residualDropout_{nullptr};
};
TORCH_MODULE(Attention);

class MlpImpl : public torch::nn::Module {
 public:
  MlpImpl(const Gpt2Config& config, double residualDeviation) {
    cFc_ = register_module("c_fc", Projection(config.hidden, 4 * config.hidden, 0.02));
    cProj_ =
        register_module("c_proj", Projection(4 * config.hidden, config.hidden, residualDeviation));
    dropout_ = register_module("dropout", torch::nn::Dropout(config.dropout));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    return dropout_(cProj_(torch::gelu(cFc_(x), "tanh")));
  }

 private:
  Projection cFc_{nullptr}, cProj_{nullptr};
  torch::nn::Dropout dropout_{nullptr};
};
TORCH_MODULE(Mlp);

class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const Gpt2Config& config) {
    // Two additions to the residual stream per layer: their sum keeps the scale of one.
    const double deviation = 0.02 / std::sqrt(2.0 * static_cast<double>(config.layers));
    ln1_ =
        register_module("ln_1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({config.hidden})));
    attn_ = register_module("attn", Attention(config, deviation));
    ln2_ =
        register_module("ln_2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({config.hidden})));
    mlp_ = register_module("mlp", Mlp(config, deviation));
  }

  torch::Tensor forward(torch::Tensor x) {
    x = x + attn_(ln1_(x));
    return x + mlp_(ln2_(x));
  }

 private:
  torch::nn::LayerNorm ln1_{nullptr}, ln2_{nullptr};
  Attention attn_{nullptr};
  Mlp mlp_{nullptr};
};
TORCH_MODULE(Block);

class Gpt2Impl : public torch::nn::Module {
 public:
  explicit Gpt2Impl(const Gpt2Config& config) {
    wte_ = register_module("wte", torch::nn::Embedding(config.vocabulary, config.hidden));
    wpe_ = register_module("wpe", torch::nn::Embedding(config.context, config.hidden));
    drop_ = register_module("drop", torch::nn::Dropout(config.dropout));
    h_ = register_module("h", torch::nn::ModuleList());
    for (int64_t i = 0; i < config.layers; ++i) h_->push_back(Block(config));
    lnF_ =
        register_module("ln_f", torch::nn::LayerNorm(torch::nn::LayerNormOptions({config.hidden})));
    torch::nn::init::normal_(wte_->weight, 0.0, 0.02);
    torch::nn::init::normal_(wpe_->weight, 0.0, 0.01);
  }

  /// tokens [batch, sequence] -> logits [batch, sequence, vocabulary]
  torch::Tensor forward(const torch::Tensor& tokens) {
    torch::Tensor x = drop_(wte_(tokens) + wpe_->weight.narrow(0, 0, tokens.size(1)));
    for (const auto& block : *h_) x = block->as<BlockImpl>()->forward(x);
    return torch::linear(lnF_(x), wte_->weight);
  }

 private:
  torch::nn::Embedding wte_{nullptr}, wpe_{nullptr};
  torch::nn::Dropout drop_{nullptr};
  torch::nn::ModuleList h_{nullptr};
  torch::nn::LayerNorm lnF_{nullptr};
};
TORCH_MODULE(Gpt2);

ModelInfo gpt2Info() {
  using Kind = SettingInfo::Kind;
  ModelInfo info;
  info.name = "gpt2";
  info.description = "GPT-2: dropout, embedding tied to the output, learned positions";
  info.settings = withTrainingSettings(
      {
          {"batch", Kind::kInteger, "4", "sequences", "per step", {}, 1},
          {"sequence", Kind::kInteger, "64", "tokens", "per sequence, at most context", {}, 1},
          {"context", Kind::kInteger, "64", "tokens", "positions the model knows", {}, 1},
          {"vocabulary", Kind::kInteger, "256", "tokens", "different ones", {}, 2},
          {"layers", Kind::kInteger, "2", "", "blocks", {}, 1, kMostRepeats},
          {"hidden", Kind::kInteger, "128", "", "width of the residual stream", {}, 1},
          {"heads", Kind::kInteger, "4", "", "of attention", {}, 1},
          {"dropout", Kind::kNumber, "0.1", "", "probability, in all three places", {}, 0, 0.99},
      },
      "1e-3");
  info.presets = {
      {"tiny", "0.4 M parameters, the defaults", {}},
      {"demo",
       "25.5 M parameters over bytes",
       {{"batch", "8"},
        {"sequence", "256"},
        {"context", "256"},
        {"layers", "8"},
        {"hidden", "512"},
        {"heads", "8"}}},
      {"small",
       "124.4 M parameters",
       {{"sequence", "1024"},
        {"context", "1024"},
        {"vocabulary", "50257"},
        {"layers", "12"},
        {"hidden", "768"},
        {"heads", "12"},
        {"lr", "6e-4"}}},
      {"medium",
       "354.8 M parameters",
       {{"sequence", "1024"},
        {"context", "1024"},
        {"vocabulary", "50257"},
        {"layers", "24"},
        {"hidden", "1024"},
        {"heads", "16"},
        {"lr", "3e-4"}}},
      {"large",
       "774.0 M parameters",
       {{"sequence", "1024"},
        {"context", "1024"},
        {"vocabulary", "50257"},
        {"layers", "36"},
        {"hidden", "1280"},
        {"heads", "20"},
        {"lr", "2.5e-4"}}},
  };
  return info;
}

ir::Expected<TrainingStep> makeGpt2(const Settings& settings, c10::Device device) {
  if (ir::Error error = checkMultiple(settings, "hidden", "heads")) return error;
  if (ir::Error error = checkAtMost(settings, "sequence", "context")) return error;
  if (ir::Error error = checkLanguageSizes(settings)) return error;
  if (ir::Error error = checkElements(settings, {"context", "hidden"})) return error;
  if (ir::Error error = checkElements(settings, {"sequence", "sequence"})) return error;
  Gpt2 model(Gpt2Config{.vocabulary = settings.integer("vocabulary"),
                        .context = settings.integer("context"),
                        .layers = settings.integer("layers"),
                        .hidden = settings.integer("hidden"),
                        .heads = settings.integer("heads"),
                        .dropout = settings.number("dropout")});
  const auto loss = [model](const std::vector<torch::Tensor>& inputs) mutable {
    return crossEntropy(model(inputs[0]), inputs[1]);
  };
  return makeStep(model.ptr(), tokenInputs(settings), loss, settings, device);
}

}  // namespace

Model gpt2() { return {gpt2Info(), makeGpt2}; }

}  // namespace stowage::tools
