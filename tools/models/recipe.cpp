// SPDX-License-Identifier: Apache-2.0
#include "tools/models/recipe.h"

#include <ATen/autocast_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/torch/adamw.h"

namespace stowage::tools {
namespace {

using Kind = SettingInfo::Kind;

/// bfloat16 autocast for the operations called while it lives: what Python's torch.autocast does.
class AutocastScope {
 public:
  AutocastScope(c10::DeviceType device, bool enabled)
      : device_(device),
        wasEnabled_(at::autocast::is_autocast_enabled(device)),
        dtype_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device, enabled);
    if (enabled) at::autocast::set_autocast_dtype(device, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~AutocastScope() {
    // The outermost scope drops the cached copies of the weights.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, wasEnabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  c10::DeviceType device_;
  bool wasEnabled_;
  c10::ScalarType dtype_;
};

/// Warms up linearly, then follows half a cosine down to zero: another learning rate in every step.
class WarmupCosine final : public torch::optim::LRScheduler {
 public:
  WarmupCosine(torch::optim::Optimizer& optimizer, int64_t warmup, int64_t horizon)
      : LRScheduler(optimizer), peaks_(get_current_lrs()), warmup_(warmup), horizon_(horizon) {
    step();  // the first step already has a learning rate of the schedule
  }

 private:
  std::vector<double> get_lrs() override {
    const auto now = static_cast<double>(step_count_);
    const auto warmup = static_cast<double>(warmup_);
    const double progress = std::min(1.0, (now - warmup) / static_cast<double>(horizon_));
    const double factor =
        now < warmup ? (now + 1) / (warmup + 1) : 0.5 * (1 + std::cos(std::numbers::pi * progress));
    std::vector<double> rates = peaks_;
    for (double& rate : rates) rate *= factor;
    return rates;
  }

  std::vector<double> peaks_;
  int64_t warmup_, horizon_;
};

std::shared_ptr<torch::optim::Optimizer> makeOptimizer(const std::vector<torch::Tensor>& parameters,
                                                       const Settings& settings) {
  const double lr = settings.number("lr");
  const double decay = settings.number("weight_decay");
  const std::string& name = settings.text("optimizer");
  if (name == "sgd") {
    return std::make_shared<torch::optim::SGD>(
        parameters,
        torch::optim::SGDOptions(lr).momentum(settings.number("momentum")).weight_decay(decay));
  }
  if (name == "stowage_adamw") {
    return std::make_shared<stowage::AdamW>(
        parameters, stowage::AdamWOptions(lr)
                        .weight_decay(decay)
                        .master_weights(settings.isOn("master_weights"))
                        .lr_every_step(settings.text("schedule") != "none"));
  }
  return std::make_shared<torch::optim::AdamW>(parameters,
                                               torch::optim::AdamWOptions(lr).weight_decay(decay));
}

std::shared_ptr<torch::optim::LRScheduler> makeScheduler(torch::optim::Optimizer& optimizer,
                                                         const Settings& settings) {
  const std::string& name = settings.text("schedule");
  if (name == "step") {
    return std::make_shared<torch::optim::StepLR>(
        optimizer, static_cast<unsigned>(settings.integer("decay_every")),
        settings.number("decay_factor"));
  }
  if (name == "cosine") {
    return std::make_shared<WarmupCosine>(optimizer, settings.integer("warmup"),
                                          settings.integer("horizon"));
  }
  return nullptr;
}

/// Refuses what would silently have no effect.
ir::Error checkUsed(const Settings& settings) {
  struct Rule {
    const char *name, *needs, *value;
  };
  constexpr Rule kRules[] = {
      {"momentum", "optimizer", "sgd"},
      {"master_weights", "optimizer", "stowage_adamw"},
      {"decay_every", "schedule", "step"},
      {"decay_factor", "schedule", "step"},
      {"warmup", "schedule", "cosine"},
      {"horizon", "schedule", "cosine"},
      {"master_weights", "precision", "bfloat16"},
  };
  for (const auto& [name, needs, value] : kRules) {
    if (!settings.isAskedFor(name) || settings.text(needs) == value) continue;
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         std::string(name) + " is set and " + needs + " is " +
                             settings.text(needs) + ", expected " + needs + "=" + value);
  }
  return ir::success();
}

std::vector<torch::Tensor> trainedParameters(const torch::nn::Module& module) {
  std::vector<torch::Tensor> trained;
  for (const torch::Tensor& parameter : module.parameters()) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  return trained;
}

std::vector<torch::Tensor> microBatch(const std::vector<torch::Tensor>& inputs, int64_t index,
                                      int64_t count) {
  std::vector<torch::Tensor> part;
  for (const torch::Tensor& input : inputs) {
    const int64_t rows = input.size(0) / count;
    part.push_back(input.narrow(0, index * rows, rows));
  }
  return part;
}

}  // namespace

std::vector<SettingInfo> withTrainingSettings(std::vector<SettingInfo> own, std::string_view lr) {
  const std::vector<SettingInfo> shared = {
      {"micro_batches",
       Kind::kInteger,
       "1",
       "",
       "parts of the batch, gradients summed",
       {},
       1,
       kMostRepeats},
      {"precision",
       Kind::kChoice,
       "float32",
       "",
       "dtype of the parameters, or autocast to bfloat16",
       {"float32", "bfloat16", "autocast"}},
      {"optimizer",
       Kind::kChoice,
       "adamw",
       "",
       "torch's AdamW or SGD, or stowage::AdamW",
       {"adamw", "sgd", "stowage_adamw"}},
      {"lr", Kind::kNumber, std::string(lr), "", "learning rate, at its highest"},
      {"weight_decay", Kind::kNumber, "0.01", "", "of the optimizer"},
      {"momentum", Kind::kNumber, "0.9", "", "of optimizer=sgd", {}, 0, 1},
      {"master_weights",
       Kind::kChoice,
       "off",
       "",
       "float32 copies of bfloat16 parameters, in optimizer=stowage_adamw",
       {"off", "on"}},
      {"schedule",
       Kind::kChoice,
       "none",
       "",
       "step: torch's StepLR; cosine: another rate in every step",
       {"none", "step", "cosine"}},
      {"decay_every",
       Kind::kInteger,
       "1",
       "steps",
       "between two decays of schedule=step",
       {},
       1,
       1e9},
      {"decay_factor", Kind::kNumber, "0.9", "", "of schedule=step"},
      {"warmup", Kind::kInteger, "10", "steps", "of rising rates in schedule=cosine"},
      {"horizon",
       Kind::kInteger,
       "1000",
       "steps",
       "from the highest rate to zero in schedule=cosine",
       {},
       1},
      {"clip", Kind::kNumber, "0", "", "largest norm of all gradients together, 0: not clipped"},
  };
  own.insert(own.end(), shared.begin(), shared.end());
  return own;
}

ir::Expected<TrainingStep> makeStep(std::shared_ptr<torch::nn::Module> module,
                                    std::vector<TrainingStep::Input> inputs,
                                    LossFunction forwardLoss, const Settings& settings,
                                    c10::Device device) {
  if (ir::Error error = checkUsed(settings)) return error;
  if (ir::Error error = checkMultiple(settings, "batch", "micro_batches")) return error;

  const std::string& precision = settings.text("precision");
  module->to(device, precision == "bfloat16" ? torch::kBFloat16 : torch::kFloat32);
  module->train();
  const auto optimizer = makeOptimizer(trainedParameters(*module), settings);
  const auto scheduler = makeScheduler(*optimizer, settings);

  TrainingStep step;
  step.module = module;
  step.optimizer = optimizer;
  step.scheduler = scheduler;
  step.inputs = std::move(inputs);
  step.loss = [forwardLoss, device, autocast = precision == "autocast",
               count = settings.integer("micro_batches")](const std::vector<torch::Tensor>& batch) {
    torch::Tensor total;
    for (int64_t i = 0; i < count; ++i) {
      torch::Tensor loss;
      {
        const AutocastScope scope(device.type(), autocast);
        loss = forwardLoss(count == 1 ? batch : microBatch(batch, i, count));
      }
      if (count > 1) loss = loss / static_cast<double>(count);
      loss.backward();
      total = total.defined() ? total + loss.detach() : loss.detach();
    }
    return std::vector<torch::Tensor>{total};
  };
  step.update = [module, optimizer, scheduler, clip = settings.number("clip")] {
    if (clip > 0) torch::nn::utils::clip_grad_norm_(module->parameters(), clip);
    optimizer->step();
    optimizer->zero_grad(/*set_to_none=*/true);
    if (scheduler) scheduler->step();
  };
  return step;
}

ir::Error checkLanguageSizes(const Settings& settings) {
  for (const char* width : {"vocabulary", "hidden"}) {
    if (ir::Error error = checkElements(settings, {"batch", "sequence", width})) return error;
    if (ir::Error error = checkElements(settings, {width, "hidden"})) return error;
  }
  return ir::success();
}

std::vector<TrainingStep::Input> tokenInputs(const Settings& settings) {
  const std::vector<int64_t> sizes = {settings.integer("batch"), settings.integer("sequence")};
  const int64_t vocabulary = settings.integer("vocabulary");
  return {{"tokens", sizes, torch::kInt64, vocabulary},
          {"targets", sizes, torch::kInt64, vocabulary}};
}

std::vector<TrainingStep::Input> imageInputs(const Settings& settings) {
  const int64_t batch = settings.integer("batch"), image = settings.integer("image");
  return {{"images", {batch, 3, image, image}, torch::kFloat32},
          {"labels", {batch}, torch::kInt64, settings.integer("classes")}};
}

torch::Tensor crossEntropy(const torch::Tensor& logits, const torch::Tensor& targets) {
  // One row per token; float32, since bfloat16 has too few digits for a sum over a vocabulary.
  return torch::cross_entropy_loss(logits.flatten(0, -2).to(torch::kFloat32), targets.flatten());
}

}  // namespace stowage::tools
