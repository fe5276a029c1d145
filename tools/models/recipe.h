// SPDX-License-Identifier: Apache-2.0
//
// What the example models share: how a forward pass becomes a training step.
// A module, what it reads and a function from inputs to loss, plus the settings of
// `trainingSettings` -> the two closures: micro-batches, autocast, backward; clipping, optimizer,
// learning rate schedule. Invariants: the module trains in place, in training mode, on the device
// and in the dtype asked for; gradients
//   are dropped (not zeroed) at the end of `update`.
// Not here: anything about one architecture.
#ifndef STOWAGE_TOOLS_MODELS_RECIPE_H_
#define STOWAGE_TOOLS_MODELS_RECIPE_H_

#include <memory>
#include <string_view>
#include <vector>

#include "tools/models/model.h"

namespace stowage::tools {

/// One row of the catalogue. `make` may rely on the settings being those of the table.
struct Model {
  ModelInfo info;
  ir::Expected<TrainingStep> (*make)(const Settings& settings, c10::Device device);
};

// One per file, each the example of its architecture.
Model gpt2();
Model llama();
Model llamaLora();
Model vit();
Model resnet();
Model lstm();

using LossFunction = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

/// Appends the settings every model has: micro_batches, precision, optimizer, lr, ... `lr` is the
/// default.
std::vector<SettingInfo> withTrainingSettings(std::vector<SettingInfo> own, std::string_view lr);

/// Makes the step of `module`, which is moved to the device and dtype. `forwardLoss` sees one
/// micro-batch.
ir::Expected<TrainingStep> makeStep(std::shared_ptr<torch::nn::Module> module,
                                    std::vector<TrainingStep::Input> inputs,
                                    LossFunction forwardLoss, const Settings& settings,
                                    c10::Device device);

/// kInvalidArgument when a tensor that every language model has would be beyond all sizes.
ir::Error checkLanguageSizes(const Settings& settings);

/// Tokens and the tokens that follow them: int64 [batch, sequence] below `vocabulary`.
std::vector<TrainingStep::Input> tokenInputs(const Settings& settings);
/// Float32 images [batch, 3, image, image] and int64 labels [batch] below `classes`.
std::vector<TrainingStep::Input> imageInputs(const Settings& settings);

/// Mean cross-entropy over all rows, in float32. logits [..., classes], targets [...].
at::Tensor crossEntropy(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MODELS_RECIPE_H_
