// SPDX-License-Identifier: Apache-2.0
#include "tools/run/in_step_times.h"

#include <memory>
#include <utility>

#include "passes/plan_step.h"
#include "planner/correct/correct_costs.h"
#include "planner/evaluate/timeline.h"
#include "planner/files/plan_file.h"
#include "runtime/training/planned_training.h"
#include "runtime/training/timed_part.h"
#include "tools/cli/budget_flag.h"
#include "tools/cli/progress.h"
#include "tools/files/load_files.h"
#include "tools/planning/planning_flags.h"
#include "tools/run/run_checks.h"
#include "tools/run/run_data.h"
#include "tools/run/run_source.h"

namespace stowage::tools {

namespace {

constexpr uint64_t kSeed = 0;

ir::Expected<LoadedPlan> makePlan(const InStepRequest& request) {
  PlanningInputs inputs;
  inputs.graph = request.graph;
  inputs.target = request.target;
  inputs.costs = request.alone;
  if (ir::Error error = measureKeepAll(inputs)) return error;
  ir::Expected<Size> size = parseSizeFlag(request.budget);
  if (!size) return size.takeError();
  ir::Expected<Bytes> budget = resolveBudget(*size, inputs);
  if (!budget) return budget.takeError();
  inputs.options.budget = *budget;
  if (ir::Error error = readHostLimit(request.host, inputs.options)) return error;
  // Times of ops inside steps are taken of the whole ops.
  inputs.options.rowBlocks.clear();
  ir::Expected<passes::PlannedStep> planned =
      passes::planStep(inputs.graph, inputs.target, inputs.costs, inputs.options);
  if (!planned) return countOutside(planned.takeError(), *size, inputs);
  LoadedPlan plan;
  plan.file = planner::makePlanFile(planned->graph, inputs.target, planned->schedule,
                                    inputs.options.budget);
  plan.captured = inputs.graph;
  plan.step = std::move(inputs.graph);
  plan.graph = std::move(planned->graph);
  plan.order = planned->order;
  plan.graphPath = request.stepFile;
  return plan;
}

ir::Expected<runtime::RunRecord> runSteps(const LoadedPlan& plan, const ir::NodeCosts& costs,
                                          const CommonFlags& flags) {
  RunSourceOptions sourceOptions;
  sourceOptions.imported.randomWeights = true;
  sourceOptions.imported.seed = kSeed;
  sourceOptions.imported.isTrial = true;
  ir::Expected<RunSource> source = openRunSource(plan, std::move(sourceOptions));
  if (!source) return source.takeError();
  ir::Expected<std::unique_ptr<RunData>> data = openRunData({}, source->inputs(), kSeed);
  if (!data) return data.takeError();
  const runtime::TimedPart part =
      runtime::partToMeasure(plan.file.schedule.predicted.stepTime,
                             /*mayBeLaunchBound=*/plan.file.target.device == ir::DeviceKind::kCuda);
  const int64_t steps = 1 + part.untimed + part.timed;
  Progress progress(!flags.quiet);
  runtime::TrainingOptions options;
  options.seed = kSeed;
  options.steps = steps;
  options.times = part;
  options.batches = batchesOf(*source, **data);
  options.report = [&progress, steps](int64_t step, double /*loss*/) {
    progress.show("measuring steps", static_cast<size_t>(step + 1), static_cast<size_t>(steps));
  };
  runtime::PlannedTraining planned = {.graph = source->graph,
                                      .schedule = plan.file.schedule,
                                      .target = plan.file.target,
                                      .costs = &costs};
  planned.options.checkEvery = 0;
  planned.options.pinning = showPinning(progress);
  return runByPlan(*source, planned, options);
}

}  // namespace

ir::Expected<InStepTimes> measureInSteps(const InStepRequest& request) {
  ir::Expected<LoadedPlan> plan = makePlan(request);
  if (!plan) return plan.takeError();
  if (ir::Error error = checkMachine(plan->file, request.target.intraOpThreads)) return error;
  const ir::Schedule& schedule = plan->file.schedule;
  ir::Expected<ir::NodeCosts> alone = ir::resolveCosts(plan->graph, request.alone);
  if (!alone) return alone.takeError();
  ir::Expected<runtime::RunRecord> run = runSteps(*plan, *alone, request.flags);
  if (!run) return run.takeError();
  InStepTimes times;
  ir::Expected<ir::CostTable> costs = planner::correctCosts(
      request.alone, {plan->graph, schedule, request.target, run->times, run->pace});
  if (!costs) return costs.takeError();
  times.costs = std::move(*costs);
  times.arena = run->arena;
  times.alone = schedule.predicted.stepTime;
  times.measured = run->pace.untimed.value_or(run->training.meanStep());
  ir::Expected<ir::NodeCosts> corrected = ir::resolveCosts(plan->graph, times.costs);
  if (!corrected) return corrected.takeError();
  times.inSteps =
      planner::computeTimeline(plan->graph, schedule, *corrected, request.target.alignBytes)
          .stepTime;
  return times;
}

}  // namespace stowage::tools
