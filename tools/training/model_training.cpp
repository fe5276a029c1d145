// SPDX-License-Identifier: Apache-2.0
#include "tools/training/model_training.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/nn/module.h>

#include <optional>
#include <utility>

#include "runtime/capture/graph/without_memory.h"
#include "runtime/checkpoint/state_io.h"
#include "runtime/torch/torch_types.h"
#include "runtime/training/eager_training.h"
#include "tools/training/step_counts.h"

namespace stowage::tools {

namespace {

/// A model whose values come from files is built without drawing any: minutes for a large one.
ir::Expected<TrainingStep> buildTraining(const Recipe& recipe, c10::Device device,
                                         bool drawsValues) {
  if (drawsValues) return makeTrainingStep(recipe.model, recipe.settings, device);
  std::optional<runtime::WithoutMemory> withoutMemory(std::in_place);
  ir::Expected<TrainingStep> training = makeTrainingStep(recipe.model, recipe.settings, device);
  withoutMemory.reset();
  if (!training) return training;
  const at::NoGradGuard guard;
  const auto giveMemory = [](at::Tensor& tensor) {
    tensor.set_data(at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()));
  };
  for (at::Tensor& parameter : training->module->parameters()) giveMemory(parameter);
  for (at::Tensor& buffer : training->module->buffers()) giveMemory(buffer);
  return training;
}

/// Puts what the files hold into the module. What is not there, or of another size, is an error.
ir::Error loadWeights(const TrainingStep& training, const std::vector<std::string>& files) {
  if (files.empty()) return ir::success();
  ir::Expected<runtime::StateFiles> state = runtime::StateFiles::open(files);
  if (!state) return state.takeError();
  const at::NoGradGuard guard;
  const auto load = [&](const std::string& name, const at::Tensor& tensor) -> ir::Error {
    const runtime::SafetensorsEntry* entry = state->find(name);
    if (entry == nullptr) {
      return ir::makeError(ir::ErrorCode::kPlanMismatch,
                           files.front() + ": missing '" + name + "'");
    }
    const at::Tensor values = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
    if (ir::Error error = state->readEntry(
            *entry, {static_cast<uint8_t*>(values.mutable_data_ptr()), values.nbytes()})) {
      return error;
    }
    tensor.copy_(values);
    return ir::success();
  };
  for (const auto& item : training.module->named_parameters()) {
    if (ir::Error error = load(item.key(), item.value())) return error;
  }
  for (const auto& item : training.module->named_buffers()) {
    if (ir::Error error = load(item.key(), item.value())) return error;
  }
  return ir::success();
}

}  // namespace

ir::Expected<runtime::TrainingRecord> trainEagerly(const Recipe& recipe, const ir::Target& target,
                                                   uint64_t seed, int64_t steps,
                                                   const runtime::BatchSource& batches,
                                                   const std::vector<std::string>& weights) {
  std::optional<TrainingStep> training;
  const auto make = [&]() -> ir::Expected<runtime::StepFunctions> {
    ir::Expected<TrainingStep> built =
        buildTraining(recipe, runtime::toDevice(target.device), weights.empty());
    if (!built) return built.takeError();
    if (ir::Error error = loadWeights(*built, weights)) return error;
    training = std::move(*built);
    return functionsOf(*training);
  };
  return runtime::trainEagerly(make, target, seed, steps, batches);
}

ir::Expected<runtime::RunRecord> runByPlan(ModelStep& step, const runtime::PlannedTraining& plan,
                                           const runtime::TrainingOptions& options) {
  runtime::PlannedTraining planned = plan;
  planned.options.advance = [&](int64_t steps) { advanceCounts(step.training, steps); };
  if (!planned.options.checkEvery) planned.options.checkEvery = 0;
  const runtime::TrainedModule module = {.module = step.training.module,
                                         .optimizer = step.training.optimizer.get()};
  return runtime::runByPlan(*step.captured, planned, options, &module);
}

}  // namespace stowage::tools
