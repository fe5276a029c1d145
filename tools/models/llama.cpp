// SPDX-License-Identifier: Apache-2.0
//
// Llama 3: RMS norm, rotary positions, grouped-query attention, SwiGLU, no biases, output matrix of
// its own or tied to the embedding. The same code with low-rank adapters on frozen weights is the
// model `llama_lora`, with `quantise=nf4` QLoRA. Parameter names and shapes are those of the
// published checkpoints, except for weights in 4 bits. The rotary table is computed in every step,
// as in Hugging Face's code, so no buffer is missing from a file of weights. Sources: Dubey et al.,
// "The Llama 3 Herd of Models", 2024, table 3; the shapes of 3.2 1B from its published
// configuration.
#include <torch/nn/init.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <numbers>

#include "tools/models/checkpointed.h"
#include "tools/models/projection.h"
#include "tools/models/recipe.h"

namespace stowage::tools {
namespace {

struct LlamaConfig {
  int64_t vocabulary, layers, hidden, intermediate, heads, kvHeads;
  bool tied;
  double ropeTheta;
  double ropeFactor;   // how much further than trained on the slow rotations reach; 1: not at all
  bool checkpointing;  // blocks are recomputed in backward
  Adapters adapters;
};

class RmsNormImpl : public torch::nn::Module {
 public:
  explicit RmsNormImpl(int64_t hidden) {
    weight_ = register_parameter("weight", torch::ones({hidden}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::rms_norm(x, weight_.sizes(), weight_, /*eps=*/1e-5);
  }

 private:
  torch::Tensor weight_;
};
TORCH_MODULE(RmsNorm);

/// Cosines and sines of the angles by which a query or key turns: [sequence, head width].
struct Rotation {
  torch::Tensor cos, sin;

  Rotation(int64_t sequence, int64_t width, const LlamaConfig& config, torch::TensorOptions like) {
    const auto options = like.dtype(torch::kFloat32);
    torch::Tensor frequency = torch::pow(config.ropeTheta, torch::arange(0, width, 2, options) *
                                                               (-1.0 / static_cast<double>(width)));
    if (config.ropeFactor != 1) frequency = reachFurther(frequency, config.ropeFactor);
    const torch::Tensor angle = torch::outer(torch::arange(sequence, options), frequency);
    const torch::Tensor both = torch::cat({angle, angle}, -1);
    cos = both.cos().to(like.dtype());
    sin = both.sin().to(like.dtype());
  }

  /// Turns x [batch, heads, sequence, width].
  torch::Tensor operator()(const torch::Tensor& x) const {
    const auto halves = x.chunk(2, -1);
    const torch::Tensor turned = torch::cat({-halves[1], halves[0]}, -1);
    // Under autocast x is narrower than the table; elsewhere nothing is converted.
    return x * cos.to(x.scalar_type()) + turned * sin.to(x.scalar_type());
  }

 private:
  /// Slow rotations are slowed down by `factor`, fast ones are left alone, those between are
  /// blended.
  static torch::Tensor reachFurther(const torch::Tensor& frequency, double factor) {
    constexpr double kTrainedOn = 8192, kSlow = 1, kFast = 4;
    const torch::Tensor turns = frequency * (kTrainedOn / (2 * std::numbers::pi));
    const torch::Tensor fast = ((turns - kSlow) / (kFast - kSlow)).clamp(0, 1);
    return frequency * (fast + (1 - fast) / factor);
  }
};

class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const LlamaConfig& config) : width_(config.hidden / config.heads) {
    const int64_t kv = config.kvHeads * width_;
    qProj_ = register_module("q_proj", Projection(config.hidden, config.hidden, config.adapters));
    kProj_ = register_module("k_proj", Projection(config.hidden, kv, config.adapters));
    vProj_ = register_module("v_proj", Projection(config.hidden, kv, config.adapters));
    oProj_ = register_module("o_proj", Projection(config.hidden, config.hidden, config.adapters));
    grouped_ = config.kvHeads != config.heads;
  }

  torch::Tensor forward(const torch::Tensor& x, const Rotation& rotate) {
    const auto heads = [&](const torch::Tensor& t) {
      return t.view({t.size(0), t.size(1), -1, width_}).transpose(1, 2);
    };
    const torch::Tensor mixed = torch::scaled_dot_product_attention(
        rotate(heads(qProj_(x))), rotate(heads(kProj_(x))), heads(vProj_(x)), /*attn_mask=*/{},
        /*dropout_p=*/0.0, /*is_causal=*/true, /*scale=*/std::nullopt, /*enable_gqa=*/grouped_);
    return oProj_(mixed.transpose(1, 2).flatten(2));
  }

 private:
  int64_t width_;
  bool grouped_;
  Projection qProj_{nullptr}, kProj_{nullptr}, vProj_{nullptr}, oProj_{nullptr};
};
TORCH_MODULE(Attention);

class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const LlamaConfig& config) {
    const int64_t outer = config.hidden, inner = config.intermediate;
    gateProj_ = register_module("gate_proj", Projection(outer, inner, config.adapters));
    upProj_ = register_module("up_proj", Projection(outer, inner, config.adapters));
    downProj_ = register_module("down_proj", Projection(inner, outer, config.adapters));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return downProj_(torch::silu(gateProj_(x)) * upProj_(x));
  }

 private:
  Projection gateProj_{nullptr}, upProj_{nullptr}, downProj_{nullptr};
};
TORCH_MODULE(Mlp);

class LayerImpl : public torch::nn::Module {
 public:
  explicit LayerImpl(const LlamaConfig& config) {
    attention_ = register_module("self_attn", Attention(config));
    mlp_ = register_module("mlp", Mlp(config));
    inputNorm_ = register_module("input_layernorm", RmsNorm(config.hidden));
    postNorm_ = register_module("post_attention_layernorm", RmsNorm(config.hidden));
  }
  torch::Tensor forward(torch::Tensor x, const Rotation& rotate) {
    x = x + attention_(inputNorm_(x), rotate);
    return x + mlp_(postNorm_(x));
  }

 private:
  Attention attention_{nullptr};
  Mlp mlp_{nullptr};
  RmsNorm inputNorm_{nullptr}, postNorm_{nullptr};
};
TORCH_MODULE(Layer);

/// Everything between the tokens and the output matrix. In the checkpoints its names begin with
/// "model".
class BodyImpl : public torch::nn::Module {
 public:
  explicit BodyImpl(const LlamaConfig& config) : config_(config) {
    embedTokens_ =
        register_module("embed_tokens", torch::nn::Embedding(config.vocabulary, config.hidden));
    layers_ = register_module("layers", torch::nn::ModuleList());
    for (int64_t i = 0; i < config.layers; ++i) layers_->push_back(Layer(config));
    norm_ = register_module("norm", RmsNorm(config.hidden));
    if (config.adapters.pairs.defined()) register_buffer("nf4_pairs", config.adapters.pairs);
    torch::nn::init::normal_(embedTokens_->weight, 0.0, 0.02);
  }

  torch::Tensor forward(const torch::Tensor& tokens) {
    torch::Tensor x = embedTokens_(tokens);
    const Rotation rotate(tokens.size(1), config_.hidden / config_.heads, config_, x.options());
    for (const auto& layer : *layers_) {
      const auto run = [layer, rotate](const torch::Tensor& in) {
        return layer->as<LayerImpl>()->forward(in, rotate);
      };
      x = config_.checkpointing ? checkpointed(run, x) : run(x);
    }
    return norm_(x);
  }
  const torch::Tensor& embedding() const { return embedTokens_->weight; }

 private:
  LlamaConfig config_;
  torch::nn::Embedding embedTokens_{nullptr};
  torch::nn::ModuleList layers_{nullptr};
  RmsNorm norm_{nullptr};
};
TORCH_MODULE(Body);

class LlamaImpl : public torch::nn::Module {
 public:
  explicit LlamaImpl(const LlamaConfig& config) {
    model_ = register_module("model", Body(config));
    if (!config.tied) {
      lmHead_ = register_module(
          "lm_head", torch::nn::Linear(
                         torch::nn::LinearOptions(config.hidden, config.vocabulary).bias(false)));
      torch::nn::init::normal_(lmHead_->weight, 0.0, 0.02);
    }
    if (config.adapters.rank > 0) freezeBase();
  }

  /// tokens [batch, sequence] -> logits [batch, sequence, vocabulary]
  torch::Tensor forward(const torch::Tensor& tokens) {
    const torch::Tensor x = model_(tokens);
    return lmHead_ ? lmHead_(x) : torch::linear(x, model_->embedding());
  }

 private:
  void freezeBase() {
    for (torch::Tensor& parameter : parameters()) parameter.requires_grad_(false);
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* projection = module->as<ProjectionImpl>()) projection->trainAdapter();
    }
  }

  Body model_{nullptr};
  torch::nn::Linear lmHead_{nullptr};
};
TORCH_MODULE(Llama);

std::vector<SettingInfo> llamaSettings() {
  using Kind = SettingInfo::Kind;
  return {
      {"batch", Kind::kInteger, "4", "sequences", "per step", {}, 1},
      {"sequence", Kind::kInteger, "64", "tokens", "per sequence", {}, 1},
      {"vocabulary", Kind::kInteger, "256", "tokens", "different ones", {}, 2},
      {"layers", Kind::kInteger, "2", "", "blocks", {}, 1, kMostRepeats},
      {"hidden", Kind::kInteger, "128", "", "width of the residual stream", {}, 2},
      {"intermediate", Kind::kInteger, "352", "", "width inside the gated MLP", {}, 1},
      {"heads", Kind::kInteger, "4", "", "of queries", {}, 1},
      {"kv_heads",
       Kind::kInteger,
       "2",
       "",
       "of keys and values, each shared by heads / kv_heads",
       {},
       1},
      {"tied", Kind::kChoice, "off", "", "the output matrix is the embedding", {"off", "on"}},
      {"checkpointing",
       Kind::kChoice,
       "off",
       "",
       "blocks keep their input alone and are recomputed in backward",
       {"off", "on"}},
      {"rope_theta", Kind::kNumber, "10000", "", "base of the rotary angles", {}, 1},
      {"rope_factor",
       Kind::kNumber,
       "1",
       "",
       "stretches slow rotary angles beyond 8192 tokens",
       {},
       1},
  };
}

std::vector<Preset> llamaPresets(std::string_view lr) {
  const std::pair<std::string, std::string> vocabulary = {"vocabulary", "128256"},
                                            theta = {"rope_theta", "500000"},
                                            rate = {"lr", std::string(lr)};
  return {
      {"tiny", "0.4 M parameters, the defaults", {}},
      {"llama3.2-1b",
       "1.24 B parameters, tied",
       {{"sequence", "4096"},
        {"layers", "16"},
        {"hidden", "2048"},
        {"intermediate", "8192"},
        {"heads", "32"},
        {"kv_heads", "8"},
        {"tied", "on"},
        {"rope_factor", "32"},
        vocabulary,
        theta,
        rate}},
      {"llama3.1-8b",
       "8.03 B parameters",
       {{"sequence", "4096"},
        {"layers", "32"},
        {"hidden", "4096"},
        {"intermediate", "14336"},
        {"heads", "32"},
        {"kv_heads", "8"},
        {"rope_factor", "8"},
        vocabulary,
        theta,
        rate}},
      {"llama3-70b",
       "70.55 B parameters",
       {{"sequence", "4096"},
        {"layers", "80"},
        {"hidden", "8192"},
        {"intermediate", "28672"},
        {"heads", "64"},
        {"kv_heads", "8"},
        vocabulary,
        theta,
        rate}},
  };
}

ir::Expected<TrainingStep> makeLlamaWith(const Adapters& adapters, const Settings& settings,
                                         c10::Device device) {
  if (ir::Error error = checkMultiple(settings, "hidden", "heads")) return error;
  if (ir::Error error = checkMultiple(settings, "heads", "kv_heads")) return error;
  if (ir::Error error = checkLanguageSizes(settings)) return error;
  if (ir::Error error = checkElements(settings, {"hidden", "intermediate"})) return error;
  if (ir::Error error = checkElements(settings, {"batch", "sequence", "intermediate"}))
    return error;
  if (ir::Error error = checkElements(settings, {"sequence", "sequence"})) return error;
  const LlamaConfig config = {.vocabulary = settings.integer("vocabulary"),
                              .layers = settings.integer("layers"),
                              .hidden = settings.integer("hidden"),
                              .intermediate = settings.integer("intermediate"),
                              .heads = settings.integer("heads"),
                              .kvHeads = settings.integer("kv_heads"),
                              .tied = settings.isOn("tied"),
                              .ropeTheta = settings.number("rope_theta"),
                              .ropeFactor = settings.number("rope_factor"),
                              .checkpointing = settings.isOn("checkpointing"),
                              .adapters = adapters};
  if (const int64_t width = config.hidden / config.heads; width % 2 != 0) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "hidden / heads is " + std::to_string(width) +
                             ", expected an even number: rotary positions turn pairs");
  }
  Llama model(config);
  const auto loss = [model](const std::vector<torch::Tensor>& inputs) mutable {
    return crossEntropy(model(inputs[0]), inputs[1]);
  };
  return makeStep(model.ptr(), tokenInputs(settings), loss, settings, device);
}

ir::Expected<TrainingStep> makeLlama(const Settings& settings, c10::Device device) {
  return makeLlamaWith({}, settings, device);
}

/// Every projection has `hidden` as one of its sides.
ir::Error checkBlocks(const Settings& settings) {
  const int64_t hidden = settings.integer("hidden");
  if (hidden % kNf4Block == 0) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "hidden is " + std::to_string(hidden) + " and quantise is nf4, expected a " +
                           "multiple of " + std::to_string(kNf4Block) +
                           ": so many weights share a scale");
}

ir::Expected<TrainingStep> makeLlamaLora(const Settings& settings, c10::Device device) {
  if (ir::Error error = checkElements(settings, {"lora_rank", "intermediate"})) return error;
  if (ir::Error error = checkElements(settings, {"lora_rank", "hidden"})) return error;
  Adapters adapters = {.rank = settings.integer("lora_rank"),
                       .alpha = settings.number("lora_alpha")};
  if (settings.text("quantise") == "nf4") {
    if (ir::Error error = checkBlocks(settings)) return error;
    adapters.pairs = nf4Pairs();
  }
  return makeLlamaWith(adapters, settings, device);
}

}  // namespace

Model llama() {
  return {{.name = "llama",
           .description = "Llama 3: RMS norm, rotary positions, grouped-query attention, SwiGLU",
           .settings = withTrainingSettings(llamaSettings(), "1e-3"),
           .presets = llamaPresets("3e-4")},
          makeLlama};
}

Model llamaLora() {
  using Kind = SettingInfo::Kind;
  std::vector<SettingInfo> settings = llamaSettings();
  settings.push_back({"lora_rank", Kind::kInteger, "8", "", "of the adapters", {}, 1});
  settings.push_back(
      {"lora_alpha", Kind::kNumber, "16", "", "adapters are scaled by lora_alpha / lora_rank"});
  settings.push_back({"quantise",
                      Kind::kChoice,
                      "none",
                      "",
                      "nf4: the projections' frozen weights take 4 bits each, as in QLoRA",
                      {"none", "nf4"}});
  return {
      {.name = "llama_lora",
       .description = "Llama 3 with trained low-rank adapters on all projections, all else frozen",
       .settings = withTrainingSettings(std::move(settings), "1e-2"),
       .presets = llamaPresets("1e-4")},
      makeLlamaLora};
}

}  // namespace stowage::tools
