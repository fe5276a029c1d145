// SPDX-License-Identifier: Apache-2.0
//
// ResNet of bottleneck blocks: convolutions, batch norm with running statistics (buffers that the
// forward pass writes), rectifiers in place, and a projection where a block changes the size. Names
// and shapes are those of torchvision, whose variant strides in the 3x3 convolution of a block.
// Source: He et al., "Deep Residual Learning for Image Recognition", 2015, table 1.
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>

#include "tools/models/recipe.h"

namespace stowage::tools {
namespace {

constexpr int64_t kExpansion = 4;  // a block gives four times its inner width

torch::nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  torch::nn::Conv2d module(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
  torch::nn::init::kaiming_normal_(module->weight, 0.0, torch::kFanOut, torch::kReLU);
  return module;
}

class BottleneckImpl : public torch::nn::Module {
 public:
  BottleneckImpl(int64_t in, int64_t width, int64_t stride) {
    const int64_t out = kExpansion * width;
    conv1_ = register_module("conv1", convolution(in, width, 1, 1));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(width));
    conv2_ = register_module("conv2", convolution(width, width, 3, stride));
    bn2_ = register_module("bn2", torch::nn::BatchNorm2d(width));
    conv3_ = register_module("conv3", convolution(width, out, 1, 1));
    bn3_ = register_module("bn3", torch::nn::BatchNorm2d(out));
    if (in == out && stride == 1) return;
    downsample_ = register_module(
        "downsample",
        torch::nn::Sequential(convolution(in, out, 1, stride), torch::nn::BatchNorm2d(out)));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor y = bn1_(conv1_(x)).relu_();
    y = bn2_(conv2_(y)).relu_();
    y = bn3_(conv3_(y));
    y += downsample_ ? downsample_->forward(x) : x;
    return y.relu_();
  }

 private:
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr}, conv3_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr}, bn2_{nullptr}, bn3_{nullptr};
  torch::nn::Sequential downsample_{nullptr};
};
TORCH_MODULE(Bottleneck);

class ResnetImpl : public torch::nn::Module {
 public:
  /// blocks: of the four stages; width: of the first one.
  ResnetImpl(const std::array<int64_t, 4>& blocks, int64_t width, int64_t classes) {
    conv1_ = register_module("conv1", convolution(3, width, 7, 2));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(width));
    int64_t in = width;
    for (size_t i = 0; i < stages_.size(); ++i) {
      const int64_t inner = width << i;
      torch::nn::Sequential stage;
      for (int64_t block = 0; block < blocks[i]; ++block) {
        stage->push_back(Bottleneck(in, inner, /*stride=*/i > 0 && block == 0 ? 2 : 1));
        in = kExpansion * inner;
      }
      stages_[i] = register_module("layer" + std::to_string(i + 1), stage);
    }
    fc_ = register_module("fc", torch::nn::Linear(in, classes));
  }

  /// images [batch, 3, image, image] -> logits [batch, classes]
  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor x = bn1_(conv1_(images.to(conv1_->weight.scalar_type()))).relu_();
    x = torch::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
    for (torch::nn::Sequential& stage : stages_) x = stage->forward(x);
    return fc_(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

 private:
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  std::array<torch::nn::Sequential, 4> stages_ = {nullptr, nullptr, nullptr, nullptr};
  torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(Resnet);

/// Blocks per stage of the network with that many layers with weights: three per block, one before,
/// one after.
std::array<int64_t, 4> blocksOf(int64_t layers) {
  switch (layers) {
    case 50:
      return {3, 4, 6, 3};
    case 101:
      return {3, 4, 23, 3};
    case 152:
      return {3, 8, 36, 3};
    default:
      return {1, 1, 1, 1};
  }
}

ModelInfo resnetInfo() {
  using Kind = SettingInfo::Kind;
  ModelInfo info;
  info.name = "resnet";
  info.description = "ResNet of bottleneck blocks: convolutions, batch norm, work in place";
  info.settings = withTrainingSettings(
      {
          {"batch", Kind::kInteger, "8", "images", "per step", {}, 2},
          {"image", Kind::kInteger, "32", "pixels", "height and width", {}, 32},
          {"classes", Kind::kInteger, "10", "", "to tell apart", {}, 2},
          {"layers",
           Kind::kChoice,
           "14",
           "",
           "with weights; 14 is one block per stage",
           {"14", "50", "101", "152"}},
          {"width",
           Kind::kInteger,
           "16",
           "",
           "channels inside the blocks of the first stage",
           {},
           1},
      },
      "1e-3");
  info.presets = {
      {"tiny", "0.5 M parameters, the defaults", {}},
      {"resnet50",
       "25.6 M parameters",
       {{"batch", "64"},
        {"image", "224"},
        {"classes", "1000"},
        {"layers", "50"},
        {"width", "64"},
        {"optimizer", "sgd"},
        {"lr", "0.1"},
        {"weight_decay", "1e-4"}}},
      {"resnet152",
       "60.2 M parameters",
       {{"batch", "64"},
        {"image", "224"},
        {"classes", "1000"},
        {"layers", "152"},
        {"width", "64"},
        {"optimizer", "sgd"},
        {"lr", "0.1"},
        {"weight_decay", "1e-4"}}},
  };
  return info;
}

ir::Expected<TrainingStep> makeResnet(const Settings& settings, c10::Device device) {
  const int64_t images = settings.integer("batch") / settings.integer("micro_batches");
  if (images < 2) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "batch / micro_batches is " + std::to_string(images) +
                             ", expected at least 2: batch norm needs a variance");
  }
  if (ir::Error error = checkElements(settings, {"batch", "width", "image", "image"})) return error;
  if (ir::Error error = checkElements(settings, {"width", "width"})) return error;
  if (ir::Error error = checkElements(settings, {"width", "classes"})) return error;
  if (ir::Error error = checkElements(settings, {"batch", "classes"})) return error;
  Resnet model(blocksOf(settings.integer("layers")), settings.integer("width"),
               settings.integer("classes"));
  const auto loss = [model](const std::vector<torch::Tensor>& inputs) mutable {
    return crossEntropy(model(inputs[0]), inputs[1]);
  };
  return makeStep(model.ptr(), imageInputs(settings), loss, settings, device);
}

}  // namespace

Model resnet() { return {resnetInfo(), makeResnet}; }

}  // namespace stowage::tools
