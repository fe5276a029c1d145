// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_source.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Support/Path.h>

#include <utility>

#include "ir/schedule/fingerprint.h"
#include "tools/files/loaded_calls.h"
#include "tools/training/model_training.h"

namespace stowage::tools {

namespace {

ir::Error arrangeModel(const LoadedPlan& plan, RunSource& source) {
  ir::Expected<ir::Graph> step = passes::graphForRanks(source.model->graph, plan.file.graph.ranks);
  if (!step) return inInput(step.takeError(), stepPath(plan));
  // An embedded graph is in the plan's order already, whichever that is.
  for (const passes::Order order : passes::kAllOrders) {
    ir::Expected<ir::Graph> graph =
        passes::arrangeGraph(*step, order, plan.file.graph.rowBlocks, plan.file.graph.hostUpdates);
    if (!graph) return graph.takeError();
    source.graph = std::move(*graph);
    if (ir::fingerprint(source.graph) == plan.file.graph.fingerprint) return ir::success();
  }
  return ir::makeError(
      ir::PlanError(ir::ErrorCode::kPlanMismatch, "capturing '" + source.recipe.text() +
                                                      "' again gave another graph than the "
                                                      "plan's, " +
                                                      plan.file.graph.fingerprint +
                                                      ": capture and plan it again")
          .at({.file = stepPath(plan)}));
}

ir::Error openModel(const LoadedPlan& plan, const RunSourceOptions& options, RunSource& source) {
  if (!options.importFlags.empty()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         options.importFlags.front() + " goes with imported steps; '" +
                             source.recipe.model +
                             "' is an example model, whose settings 'capture --set' gives");
  }
  // For a GPU the first values go straight into the arenas, tensor by tensor.
  const bool onGpu = plan.file.target.device == ir::DeviceKind::kCuda;
  ir::Expected<std::unique_ptr<ModelStep>> step = captureModel(
      source.recipe,
      {.target = plan.file.target, .seed = options.imported.seed, .withoutMemory = onGpu});
  if (!step) return inInput(step.takeError(), stepPath(plan));
  source.model = std::move(*step);
  return arrangeModel(plan, source);
}

ir::Error openImported(const LoadedPlan& plan, ImportedRunOptions options, RunSource& source) {
  if (plan.captured.ranks() > 1) {
    return ir::makeError(
        ir::PlanError(ir::ErrorCode::kUnsupported,
                      "the embedded graph is that of a rank, and an imported step's values come "
                      "from the whole one: --graph names the captured step")
            .at({.file = stepPath(plan)}));
  }
  if (ir::Error error = checkMayRun(plan.captured, stepPath(plan))) return error;
  options.folder = llvm::sys::path::parent_path(stepPath(plan)).str();
  ir::Expected<std::unique_ptr<ImportedRun>> run = ImportedRun::open(plan.captured, options);
  if (!run) return ofStepFile(run.takeError(), stepPath(plan));
  source.imported = std::move(*run);
  source.graph = plan.graph;
  return ir::success();
}

}  // namespace

ir::Expected<RunSource> openRunSource(const LoadedPlan& plan, RunSourceOptions options) {
  RunSource source;
  source.file = stepPath(plan);
  const std::string& text = plan.graph.provenance().recipe;
  ir::Expected<Recipe> recipe = parseRecipe(text);
  if (!recipe) return inInput(recipe.takeError(), stepPath(plan));
  source.recipe = std::move(*recipe);
  const bool isModel = llvm::any_of(
      modelCatalogue(), [&](const ModelInfo& model) { return model.name == source.recipe.model; });
  if (!isModel && !source.recipe.isArchive()) {
    return ir::makeError(ir::PlanError(ir::ErrorCode::kUnsupported,
                                       "the graph was captured from '" + text +
                                           "', expected an example model or a .pt2 archive: steps "
                                           "of other code run through the C++ interface")
                             .at({.file = stepPath(plan)}));
  }
  ir::Error error = source.recipe.isArchive()
                        ? openImported(plan, std::move(options.imported), source)
                        : openModel(plan, options, source);
  if (error) return error;
  return source;
}

ir::Error arrangeAs(const LoadedPlan& plan, RunSource& source) {
  if (source.model) return arrangeModel(plan, source);
  source.graph = plan.graph;
  return ir::success();
}

runtime::BatchSource batchesOf(const RunSource& source, RunData& data) {
  return [&](int64_t position) -> ir::Expected<runtime::Batch> {
    ir::Expected<runtime::Batch> batch = data.at(position);
    if (!batch || source.model) return batch;
    return source.imported->withRates(std::move(*batch));
  };
}

ir::Expected<runtime::RunRecord> runByPlan(RunSource& source, const runtime::PlannedTraining& plan,
                                           const runtime::TrainingOptions& options) {
  ir::Expected<runtime::RunRecord> record =
      source.model ? runByPlan(*source.model, plan, options)
                   : runtime::runByPlan(source.imported->step(), plan, options);
  if (record) return record;
  return inInput(ofStepFile(record.takeError(), source.file), source.file);
}

}  // namespace stowage::tools
