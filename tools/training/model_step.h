// SPDX-License-Identifier: Apache-2.0
//
// Turns a recipe ("gpt2 preset=tiny batch=4", on the command line and in captured files) into a
// captured step: traces the example model's closures for a target. Equal recipes give equal graphs.
// The recipe of an imported step names its archive.
#ifndef STOWAGE_TOOLS_TRAINING_MODEL_STEP_H_
#define STOWAGE_TOOLS_TRAINING_MODEL_STEP_H_

#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "passes/pipeline.h"
#include "runtime/capture/capture.h"
#include "tools/models/model.h"

namespace stowage::tools {

struct Recipe {
  std::string model;                                           // or an archive's file name
  std::vector<std::string> settings;                           // "key=value"
  std::string fingerprint = "";                                // of the archive; "" for a model
  Bytes bucketBytes = passes::NormaliseOptions().bucketBytes;  // of list ops
  bool isArchive() const;
  std::string text() const;  // "model key=value ...", "step.pt2 fingerprint=xxh64:..."
};
/// Errors: kInvalidArgument for an empty text.
ir::Expected<Recipe> parseRecipe(const std::string& text);

/// The form of a step that goes into files: dead calls dropped, list ops split into buckets of at
/// most `bucketBytes`. Ids change, names of storages stay. Errors: those of the passes.
ir::Expected<ir::Graph> normaliseStep(const ir::Graph& graph, Bytes bucketBytes);

/// The closures of an example model as capture and eager training take them. `training` outlives
/// them.
runtime::StepFunctions functionsOf(const TrainingStep& training);

struct ModelStep {
  TrainingStep training;  // must outlive every use of `captured`
  std::unique_ptr<runtime::CapturedStep> captured;
  ir::Graph graph;  // captured and normalised: what goes into files
};

struct ModelStepOptions {
  ir::Target target;
  uint64_t seed = 0;          // of the first values
  bool withoutMemory = true;  // false: an ordinary live module (the CPU only)
};
/// Errors: those of makeTrainingStep and captureStep.
ir::Expected<std::unique_ptr<ModelStep>> captureModel(const Recipe& recipe,
                                                      const ModelStepOptions& options);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_TRAINING_MODEL_STEP_H_
