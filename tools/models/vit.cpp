// SPDX-License-Identifier: Apache-2.0
//
// Vision transformer: an image becomes a row of patches, read by transformer blocks whose attention
// has no mask; a learned token in front of the row gives the class. Parameter names are those of
// the timm library. Source: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020, table 1.
#include <torch/nn/init.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "tools/models/recipe.h"

namespace stowage::tools {
namespace {

struct VitConfig {
  int64_t image, patch, classes, layers, hidden, heads;
  double dropout;
};

class AttentionImpl : public torch::nn::Module {
 public:
  AttentionImpl(int64_t hidden, int64_t heads) : heads_(heads) {
    qkv_ = register_module("qkv", torch::nn::Linear(hidden, 3 * hidden));
    proj_ = register_module("proj", torch::nn::Linear(hidden, hidden));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const int64_t batch = x.size(0), tokens = x.size(1);
    // [batch, tokens, 3, heads, width] -> three of [batch, heads, tokens, width]
    const auto qkv =
        qkv_(x).view({batch, tokens, 3, heads_, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
    const torch::Tensor mixed = torch::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]);
    return proj_(mixed.transpose(1, 2).flatten(2));
  }

 private:
  int64_t heads_;
  torch::nn::Linear qkv_{nullptr}, proj_{nullptr};
};
TORCH_MODULE(Attention);

class MlpImpl : public torch::nn::Module {
 public:
  MlpImpl(int64_t hidden, double dropout) {
    fc1_ = register_module("fc1", torch::nn::Linear(hidden, 4 * hidden));
    fc2_ = register_module("fc2", torch::nn::Linear(4 * hidden, hidden));
    drop_ = register_module("drop", torch::nn::Dropout(dropout));
  }
  torch::Tensor forward(const torch::Tensor& x) { return drop_(fc2_(drop_(torch::gelu(fc1_(x))))); }

 private:
  torch::nn::Linear fc1_{nullptr}, fc2_{nullptr};
  torch::nn::Dropout drop_{nullptr};
};
TORCH_MODULE(Mlp);

class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const VitConfig& config) {
    const auto norm = torch::nn::LayerNormOptions({config.hidden}).eps(1e-6);
    norm1_ = register_module("norm1", torch::nn::LayerNorm(norm));
    attn_ = register_module("attn", Attention(config.hidden, config.heads));
    norm2_ = register_module("norm2", torch::nn::LayerNorm(norm));
    mlp_ = register_module("mlp", Mlp(config.hidden, config.dropout));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = x + attn_(norm1_(x));
    return x + mlp_(norm2_(x));
  }

 private:
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
  Attention attn_{nullptr};
  Mlp mlp_{nullptr};
};
TORCH_MODULE(Block);

/// Cuts the image into squares, each a token: a convolution whose stride is its kernel.
class PatchEmbedImpl : public torch::nn::Module {
 public:
  PatchEmbedImpl(int64_t patch, int64_t hidden) {
    proj_ = register_module(
        "proj", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, hidden, patch).stride(patch)));
  }
  /// [batch, 3, image, image] -> [batch, patches, hidden]
  torch::Tensor forward(const torch::Tensor& images) {
    return proj_(images.to(proj_->weight.scalar_type())).flatten(2).transpose(1, 2);
  }

 private:
  torch::nn::Conv2d proj_{nullptr};
};
TORCH_MODULE(PatchEmbed);

class VitImpl : public torch::nn::Module {
 public:
  explicit VitImpl(const VitConfig& config) {
    const int64_t side = config.image / config.patch;
    clsToken_ = register_parameter("cls_token", torch::zeros({1, 1, config.hidden}));
    posEmbed_ = register_parameter("pos_embed", torch::empty({1, side * side + 1, config.hidden}));
    torch::nn::init::normal_(posEmbed_, 0.0, 0.02);
    patchEmbed_ = register_module("patch_embed", PatchEmbed(config.patch, config.hidden));
    drop_ = register_module("pos_drop", torch::nn::Dropout(config.dropout));
    blocks_ = register_module("blocks", torch::nn::ModuleList());
    for (int64_t i = 0; i < config.layers; ++i) blocks_->push_back(Block(config));
    norm_ = register_module(
        "norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({config.hidden}).eps(1e-6)));
    head_ = register_module("head", torch::nn::Linear(config.hidden, config.classes));
  }

  /// images [batch, 3, image, image] -> logits [batch, classes]
  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor patches = patchEmbed_(images);
    const torch::Tensor first =
        clsToken_.to(patches.scalar_type()).expand({patches.size(0), -1, -1});
    torch::Tensor x = drop_(torch::cat({first, patches}, 1) + posEmbed_);
    for (const auto& block : *blocks_) x = block->as<BlockImpl>()->forward(x);
    return head_(norm_(x).select(1, 0));
  }

 private:
  torch::Tensor clsToken_, posEmbed_;
  PatchEmbed patchEmbed_{nullptr};
  torch::nn::Dropout drop_{nullptr};
  torch::nn::ModuleList blocks_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(Vit);

ModelInfo vitInfo() {
  using Kind = SettingInfo::Kind;
  ModelInfo info;
  info.name = "vit";
  info.description = "Vision transformer: patches of an image, attention without a mask";
  info.settings = withTrainingSettings(
      {
          {"batch", Kind::kInteger, "8", "images", "per step", {}, 1},
          {"image", Kind::kInteger, "32", "pixels", "height and width, a multiple of patch", {}, 1},
          {"patch", Kind::kInteger, "8", "pixels", "height and width of a patch", {}, 1},
          {"classes", Kind::kInteger, "10", "", "to tell apart", {}, 2},
          {"layers", Kind::kInteger, "2", "", "blocks", {}, 1, kMostRepeats},
          {"hidden", Kind::kInteger, "128", "", "width of the residual stream", {}, 1},
          {"heads", Kind::kInteger, "4", "", "of attention", {}, 1},
          {"dropout", Kind::kNumber, "0", "", "probability", {}, 0, 0.99},
      },
      "1e-3");
  info.presets = {
      {"tiny", "0.4 M parameters, the defaults", {}},
      {"b16",
       "86.6 M parameters",
       {{"batch", "64"},
        {"image", "224"},
        {"patch", "16"},
        {"classes", "1000"},
        {"layers", "12"},
        {"hidden", "768"},
        {"heads", "12"}}},
      {"l16",
       "304.3 M parameters",
       {{"batch", "64"},
        {"image", "224"},
        {"patch", "16"},
        {"classes", "1000"},
        {"layers", "24"},
        {"hidden", "1024"},
        {"heads", "16"}}},
  };
  return info;
}

ir::Expected<TrainingStep> makeVit(const Settings& settings, c10::Device device) {
  if (ir::Error error = checkMultiple(settings, "hidden", "heads")) return error;
  if (ir::Error error = checkMultiple(settings, "image", "patch")) return error;
  if (ir::Error error = checkElements(settings, {"hidden", "hidden"})) return error;
  if (ir::Error error = checkElements(settings, {"hidden", "classes"})) return error;
  if (ir::Error error = checkElements(settings, {"batch", "classes"})) return error;
  if (ir::Error error = checkElements(settings, {"hidden", "patch", "patch"})) return error;
  if (ir::Error error = checkElements(settings, {"batch", "hidden", "image", "image"}))
    return error;
  // Every patch attends to every patch.
  if (ir::Error error = checkElements(settings, {"image", "image", "image", "image"},
                                      {"patch", "patch", "patch", "patch"})) {
    return error;
  }
  Vit model(VitConfig{.image = settings.integer("image"),
                      .patch = settings.integer("patch"),
                      .classes = settings.integer("classes"),
                      .layers = settings.integer("layers"),
                      .hidden = settings.integer("hidden"),
                      .heads = settings.integer("heads"),
                      .dropout = settings.number("dropout")});
  const auto loss = [model](const std::vector<torch::Tensor>& inputs) mutable {
    return crossEntropy(model(inputs[0]), inputs[1]);
  };
  return makeStep(model.ptr(), imageInputs(settings), loss, settings, device);
}

}  // namespace

Model vit() { return {vitInfo(), makeVit}; }

}  // namespace stowage::tools
