// SPDX-License-Identifier: Apache-2.0
//
// The step that a plan is for, made ready to run from what its graph says of itself: an example
// model is captured again from its recipe and must have the plan's fingerprint, an imported step is
// its graph. Not here: where batches come from, checkpoints.
#ifndef STOWAGE_TOOLS_RUN_RUN_SOURCE_H_
#define STOWAGE_TOOLS_RUN_RUN_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/training/planned_training.h"
#include "tools/files/load_files.h"
#include "tools/run/imported_run.h"
#include "tools/run/run_data.h"
#include "tools/training/model_step.h"

namespace stowage::tools {

struct RunSource {
  Recipe recipe;
  std::unique_ptr<ModelStep> model;       // either this
  std::unique_ptr<ImportedRun> imported;  // or this
  std::string file;                       // where the imported step was read from
  ir::Graph graph;                        // in the plan's order
  const std::vector<TrainingStep::Input>& inputs() const {
    return model ? model->training.inputs : imported->inputs();
  }
};

struct RunSourceOptions {
  ImportedRunOptions imported;           // all but the folder; the seed is any step's
  std::vector<std::string> importFlags;  // given ones that go with imported steps alone
};

/// `plan` outlives the source. Errors: kUnsupported for a step of other code; kPlanMismatch when
/// capturing again gives another graph, or the recipe is none, with the file; kInvalidArgument for
/// flags that do not go with the step; those of ImportedRun::open.
ir::Expected<RunSource> openRunSource(const LoadedPlan& plan, RunSourceOptions options);

/// Puts the source's graph into the plan's order, which has changed. Errors: kPlanMismatch.
ir::Error arrangeAs(const LoadedPlan& plan, RunSource& source);

/// The data's batches; an imported step's with its learning rates. Source and data outlive it.
runtime::BatchSource batchesOf(const RunSource& source, RunData& data);

/// Trains the step by a plan; it is used up.
ir::Expected<runtime::RunRecord> runByPlan(RunSource& source, const runtime::PlannedTraining& plan,
                                           const runtime::TrainingOptions& options);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_RUN_SOURCE_H_
