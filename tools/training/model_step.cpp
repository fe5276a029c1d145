// SPDX-License-Identifier: Apache-2.0
#include "tools/training/model_step.h"

#include <ATen/Context.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

#include <optional>
#include <utility>

#include "ir/base/affix.h"
#include "passes/manage/pass_manager.h"
#include "passes/pipeline.h"
#include "runtime/capture/graph/without_memory.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/torch/internals/fake_gpu.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"

namespace stowage::tools {

ir::Expected<ir::Graph> normaliseStep(const ir::Graph& graph, Bytes bucketBytes) {
  passes::PassState state;
  state.graph = graph;
  const passes::PassManager manager(
      passes::makeNormalisingPasses({.bucketBytes = bucketBytes, .reorder = false}));
  ir::Expected<std::vector<passes::PassRecord>> reports = manager.run(state);
  if (!reports) return reports.takeError();
  return std::move(state.graph);
}

namespace {

constexpr const char* kFingerprintWord = "fingerprint=";
constexpr const char* kBucketWord = "bucket_bytes=";

llvm::StringRef lastWord(llvm::StringRef text) { return text.rsplit(' ').second; }
llvm::StringRef dropLastWord(llvm::StringRef text) { return text.rsplit(' ').first.rtrim(); }

/// Without memory nothing of the model is held: its first values come from the record, or from a
/// file.
ir::Expected<TrainingStep> buildTraining(const Recipe& recipe, const ModelStepOptions& options) {
  const c10::Device device = runtime::toDevice(options.target.device);
  at::manual_seed(options.seed);
  std::optional<runtime::WithoutMemory> withoutMemory;
  if (options.withoutMemory) withoutMemory.emplace();
  std::optional<ir::Expected<TrainingStep>> made;
  if (ir::Error error = runtime::callTorch("building " + recipe.model, [&] {
        made.emplace(makeTrainingStep(recipe.model, recipe.settings, device));
      })) {
    return error;
  }
  return std::move(*made);
}

}  // namespace

bool Recipe::isArchive() const { return !fingerprint.empty() || ir::endsWith(model, ".pt2"); }

std::string Recipe::text() const {
  std::string joined = model;
  for (const std::string& setting : settings) joined += " " + setting;
  if (!fingerprint.empty()) joined += " " + std::string(kFingerprintWord) + fingerprint;
  if (bucketBytes != passes::NormaliseOptions().bucketBytes) {
    joined += " " + std::string(kBucketWord) + std::to_string(bucketBytes.value());
  }
  return joined;
}

ir::Expected<Recipe> parseRecipe(const std::string& text) {
  Recipe recipe;
  llvm::StringRef rest = llvm::StringRef(text).trim();
  int64_t bucket = 0;
  llvm::StringRef word = lastWord(rest);
  if (word.consume_front(kBucketWord) && !word.getAsInteger(10, bucket) && bucket > 0) {
    recipe.bucketBytes = Bytes(bucket);
    rest = dropLastWord(rest);
  }
  word = lastWord(rest);
  if (word.consume_front(kFingerprintWord)) {
    recipe.fingerprint = word.str();
    rest = dropLastWord(rest);
  }
  if (rest.empty()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "an empty recipe, expected a model's name and its settings");
  }
  recipe.model = rest.str();
  if (recipe.isArchive()) return recipe;  // a file's name, which may have spaces
  llvm::SmallVector<llvm::StringRef> words;
  rest.split(words, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  recipe.model = words.front().str();
  for (const llvm::StringRef setting : llvm::ArrayRef<llvm::StringRef>(words).drop_front()) {
    recipe.settings.push_back(setting.str());
  }
  return recipe;
}

runtime::StepFunctions functionsOf(const TrainingStep& training) {
  runtime::StepFunctions functions;
  functions.loss = training.loss;
  functions.update = training.update;
  functions.module = training.module;
  functions.optimizer = training.optimizer.get();
  return functions;
}

ir::Expected<std::unique_ptr<ModelStep>> captureModel(const Recipe& recipe,
                                                      const ModelStepOptions& options) {
  auto step = std::make_unique<ModelStep>();
  if (options.target.device == ir::DeviceKind::kCuda) {
    if (!options.withoutMemory) {
      return ir::makeError(ir::ErrorCode::kInvalidArgument,
                           "a live module for a CUDA target, expected one without memory");
    }
    // A real one answers for itself.
    if (runtime::loadedGpuLibrary() == nullptr) {
      if (ir::Error error = runtime::enableFakeGpu(options.target)) return error;
    }
  }
  ir::Expected<TrainingStep> training = buildTraining(recipe, options);
  if (!training) return training.takeError();
  step->training = std::move(*training);
  std::vector<runtime::InputSpec> inputs;
  for (const TrainingStep::Input& input : step->training.inputs) {
    inputs.push_back({.name = input.name, .sizes = input.sizes, .dtype = input.dtype});
  }
  ir::Expected<std::unique_ptr<runtime::CapturedStep>> captured = runtime::captureStep(
      functionsOf(step->training), std::move(inputs),
      {.target = options.target, .name = recipe.model, .recipe = recipe.text()});
  if (!captured) return captured.takeError();
  step->captured = std::move(*captured);
  ir::Expected<ir::Graph> graph = normaliseStep(step->captured->graph(), recipe.bucketBytes);
  if (!graph) return graph.takeError();
  step->graph = std::move(*graph);
  return step;
}

}  // namespace stowage::tools
