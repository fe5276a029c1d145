// SPDX-License-Identifier: Apache-2.0
//
// From a recipe ("gpt2 preset=tiny batch=4", as on the command line and in captured files) to a
// captured training step: the example model's closures traced for a target. The same recipe gives
// the same graph every time.
#ifndef STOWAGE_TOOLS_MODEL_STEP_H_
#define STOWAGE_TOOLS_MODEL_STEP_H_

#include <memory>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/graph.h"
#include "ir/target.h"
#include "runtime/capture/capture.h"
#include "tools/models/model.h"

namespace stowage::tools {

struct Recipe {
  std::string model;
  std::vector<std::string> settings;  // "key=value"
  std::string text() const;           // "model key=value ..."
};
/// Errors: kInvalidArgument for an empty text.
ir::Expected<Recipe> parseRecipe(const std::string& text);

/// A captured or imported step as it goes into files: without dead calls, list ops in buckets. Ids
/// change, names of storages stay. Errors: those of the passes.
ir::Expected<ir::Graph> normaliseStep(const ir::Graph& graph);

struct ModelStep {
  TrainingStep training;  // outlived by nothing that uses `captured`
  std::unique_ptr<runtime::CapturedStep> captured;
  ir::Graph graph;  // captured and normalised: what goes into files
};

struct ModelStepOptions {
  ir::Target target;
  uint64_t seed = 0;  // of the first values
  bool withoutMemory =
      true;  // construct without memory; false: an ordinary live module (the CPU only)
};
/// Errors: those of makeTrainingStep and captureStep.
ir::Expected<std::unique_ptr<ModelStep>> captureModel(const Recipe& recipe,
                                                      const ModelStepOptions& options);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MODEL_STEP_H_
