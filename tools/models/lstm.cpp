// SPDX-License-Identifier: Apache-2.0
//
// Language model of LSTM layers, unrolled over time by hand: the same cell in every step, so each
// weight gathers a gradient per token of the sequence. torch::nn::LSTM is not used: on a GPU it
// packs its weights into one buffer behind the caller's back, which a capture refuses; this runs
// the same operations on every device. Operations of a layer: one addmm for the inputs of all times
// and unbind; per time one addmm, chunk, three sigmoids, two tanhs, three multiplications, one
// addition; one stack. Sources: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997; sizes
// of the presets: Zaremba et al., "Recurrent Neural Network Regularization", 2014, section 4.1.
#include <torch/nn/init.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "tools/models/recipe.h"

namespace stowage::tools {
namespace {

/// One layer. Weights are named and laid out as in torch::nn::LSTMCell: rows for input, forget,
/// cell, output.
class LstmLayerImpl : public torch::nn::Module {
 public:
  explicit LstmLayerImpl(int64_t hidden) : hidden_(hidden) {
    const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
    weightIh_ = register_parameter("weight_ih", torch::empty({4 * hidden, hidden}));
    weightHh_ = register_parameter("weight_hh", torch::empty({4 * hidden, hidden}));
    bias_ = register_parameter("bias", torch::zeros({4 * hidden}));
    torch::nn::init::uniform_(weightIh_, -bound, bound);
    torch::nn::init::uniform_(weightHh_, -bound, bound);
  }

  /// [sequence, batch, hidden] -> the same, starting from a state of zeros
  torch::Tensor forward(const torch::Tensor& inputs) {
    // What the inputs add to the gates does not depend on the state: one product for all times.
    const auto fromInputs = torch::linear(inputs, weightIh_, bias_).unbind(0);
    const torch::Tensor recurrent = weightHh_.t();
    torch::Tensor h = torch::zeros({inputs.size(1), hidden_}, fromInputs[0].options());
    torch::Tensor c = torch::zeros_like(h);
    std::vector<torch::Tensor> outputs;
    for (const torch::Tensor& fromInput : fromInputs) {
      const auto gates = torch::addmm(fromInput, h, recurrent).chunk(4, -1);
      c = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
      h = gates[3].sigmoid() * c.tanh();
      outputs.push_back(h);
    }
    return torch::stack(outputs);
  }

 private:
  int64_t hidden_;
  torch::Tensor weightIh_, weightHh_, bias_;
};
TORCH_MODULE(LstmLayer);

class LstmModelImpl : public torch::nn::Module {
 public:
  LstmModelImpl(int64_t vocabulary, int64_t layers, int64_t hidden, double dropout) {
    embedding_ = register_module("embedding", torch::nn::Embedding(vocabulary, hidden));
    layers_ = register_module("layers", torch::nn::ModuleList());
    for (int64_t i = 0; i < layers; ++i) layers_->push_back(LstmLayer(hidden));
    dropout_ = register_module("dropout", torch::nn::Dropout(dropout));
    decoder_ = register_module("decoder", torch::nn::Linear(hidden, vocabulary));
    torch::nn::init::uniform_(embedding_->weight, -0.1, 0.1);
  }

  /// tokens [batch, sequence] -> logits [batch, sequence, vocabulary]
  torch::Tensor forward(const torch::Tensor& tokens) {
    torch::Tensor x = dropout_(embedding_(tokens.t()));
    for (const auto& layer : *layers_) x = dropout_(layer->as<LstmLayerImpl>()->forward(x));
    return decoder_(x).transpose(0, 1);
  }

 private:
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::ModuleList layers_{nullptr};
  torch::nn::Dropout dropout_{nullptr};
  torch::nn::Linear decoder_{nullptr};
};
TORCH_MODULE(LstmModel);

ModelInfo lstmInfo() {
  using Kind = SettingInfo::Kind;
  ModelInfo info;
  info.name = "lstm";
  info.description = "LSTM language model: a loop over time, thousands of small operations";
  info.settings = withTrainingSettings(
      {
          {"batch", Kind::kInteger, "4", "sequences", "per step", {}, 1},
          {"sequence", Kind::kInteger, "16", "tokens", "per sequence", {}, 1, kMostRepeats},
          {"vocabulary", Kind::kInteger, "256", "tokens", "different ones", {}, 2},
          {"layers", Kind::kInteger, "2", "", "of cells", {}, 1, kMostRepeats},
          {"hidden", Kind::kInteger, "128", "", "width of embedding and state", {}, 1},
          {"dropout", Kind::kNumber, "0.1", "", "probability, between layers", {}, 0, 0.99},
      },
      "1e-2");
  info.presets = {
      {"tiny", "0.3 M parameters, the defaults", {}},
      {"medium",
       "19.8 M parameters",
       {{"batch", "20"},
        {"sequence", "35"},
        {"vocabulary", "10000"},
        {"hidden", "650"},
        {"dropout", "0.5"}}},
      {"large",
       "66.0 M parameters",
       {{"batch", "20"},
        {"sequence", "35"},
        {"vocabulary", "10000"},
        {"hidden", "1500"},
        {"dropout", "0.65"}}},
  };
  return info;
}

ir::Expected<TrainingStep> makeLstm(const Settings& settings, c10::Device device) {
  if (ir::Error error = checkLanguageSizes(settings)) return error;
  LstmModel model(settings.integer("vocabulary"), settings.integer("layers"),
                  settings.integer("hidden"), settings.number("dropout"));
  const auto loss = [model](const std::vector<torch::Tensor>& inputs) mutable {
    return crossEntropy(model(inputs[0]), inputs[1]);
  };
  return makeStep(model.ptr(), tokenInputs(settings), loss, settings, device);
}

}  // namespace

Model lstm() { return {lstmInfo(), makeLstm}; }

}  // namespace stowage::tools
