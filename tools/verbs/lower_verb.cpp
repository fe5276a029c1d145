// SPDX-License-Identifier: Apache-2.0
//
// stowage lower plan.json -o plan.json: after decisions were edited by hand, a new schedule from
// them, without planning. Costs: --costs, else those that the plan was made from; with --estimate,
// and for plans made from an estimate, the target profile's with the temporaries that the plan
// itself states.
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "ir/base/format_apart.h"
#include "ir/costs/unplanned_peak.h"
#include "passes/pipeline.h"
#include "planner/targets/roofline.h"
#include "tools/cli/budget_flag.h"
#include "tools/files/load_files.h"
#include "tools/files/whole_file.h"
#include "tools/planning/lowered_plan.h"
#include "tools/planning/plan_output.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

struct LowerFlags : CommonFlags {
  std::string plan;
  std::string graph;
  std::string costs;
  std::string output;
  bool estimate = false;
};

/// The profile's estimate, as the plan was made from it; else with each op's temporaries as in the
/// plan, which may have been measured.
ir::Expected<ir::CostTable> estimateCosts(const LoadedPlan& plan) {
  if (plan.file.costs.source == ir::CostSource::kRoofline) {
    ir::Expected<planner::PlansCosts> own = findPlansCosts(plan);
    if (!own) return own.takeError();
    if (own->file) return std::move(own->file->table);
  }
  ir::CostTable table = planner::rooflineCosts(plan.graph, plan.file.target);
  for (const ir::Command& command : plan.file.schedule.commands) {
    if (command.kind != ir::CommandKind::kRun || command.recompute != 0) continue;
    auto row = table.bySignature.find(ir::nodeSignature(plan.graph, command.node));
    if (row != table.bySignature.end()) row->second.temporary = command.temp.bytes;
  }
  return table;
}

ir::Expected<planner::CostFile> readCosts(const LowerFlags& flags, const LoadedPlan& plan) {
  if (flags.costs.empty()) return loadPlansCosts(plan);
  ir::Expected<planner::CostFile> file = loadCosts(flags.costs);
  if (!file) return file.takeError();
  if (ir::Error error = checkSameTorch(plan.graph, file->torchVersion)) {
    return inInput(std::move(error), flags.costs);
  }
  file->table = planner::costsForPlan(plan.file, plan.graph, std::move(file->table));
  const std::string different = differentCosts(plan.file, flags.costs, file->table);
  remark(different, flags);
  return file;
}

ir::Error addCosts(const LowerFlags& flags, const LoadedPlan& plan, PlanningInputs& inputs) {
  const bool wasEstimated = plan.file.costs.source == ir::CostSource::kRoofline;
  if (flags.estimate || (flags.costs.empty() && wasEstimated)) {
    ir::Expected<ir::CostTable> estimate = estimateCosts(plan);
    if (!estimate) return estimate.takeError();
    inputs.costs = std::move(*estimate);
    return ir::success();
  }
  ir::Expected<planner::CostFile> file = readCosts(flags, plan);
  if (!file) return file.takeError();
  inputs.costs = std::move(file->table);
  inputs.costsTorchVersion = std::move(file->torchVersion);
  inputs.costsPath = flags.costs.empty() ? planner::plansCostsPath(plan.file) : flags.costs;
  ir::Expected<ir::NodeCosts> resolved = ir::resolveCosts(plan.graph, inputs.costs);
  if (resolved) return ir::success();
  return notMeasured(resolved.takeError(), stepPath(plan), inputs.costsPath);
}

/// Of the step itself, which has other ops than a plan in row blocks or with updates on the host.
ir::Expected<ir::CostTable> costsOfStep(const LoadedPlan& plan, const PlanningInputs& inputs) {
  if (!plan.file.graph.hasOtherOps()) return inputs.costs;
  if (inputs.costsPath.empty()) return planner::rooflineCosts(plan.step, plan.file.target);
  ir::Expected<planner::CostFile> file = loadCosts(inputs.costsPath);
  if (!file) return file.takeError();
  return std::move(file->table);
}

/// What the step needs without a plan, and how long it takes then, is a matter of its own order,
/// which only its file has.
ir::Error measureUnplanned(const LoadedPlan& plan, PlanningInputs& inputs) {
  ir::Expected<ir::CostTable> table = costsOfStep(plan, inputs);
  if (!table) return table.takeError();
  ir::Expected<ir::NodeCosts> costs =
      ir::resolveCosts(plan.step, *table, plan.file.schedule.graphMode);
  if (!costs) return notMeasured(costs.takeError(), stepPath(plan), inputs.costsPath);
  inputs.keepAll = ir::computeUnplannedPeak(plan.step, inputs.target, *costs);
  if (plan.file.graph.hasOtherOps()) inputs.unlimited = costs->totalTime();
  return ir::success();
}

ir::Expected<PlanningInputs> makeInputs(const LowerFlags& flags, const LoadedPlan& plan) {
  PlanningInputs inputs;
  inputs.graph = plan.graph;
  inputs.target = plan.file.target;
  inputs.options.budget = plan.file.budget;
  takeLimits(plan.file, inputs.options);
  if (ir::Error error = addCosts(flags, plan, inputs)) return error;
  if (!plan.graphPath.empty()) {
    if (ir::Error error = measureUnplanned(plan, inputs)) return error;
  }
  return inputs;
}

/// What is wrong is in the plan's rows or in the costs, not in the command line; passes are not the
/// user's business.
ir::Error inDecisions(ir::Error error, const LowerFlags& flags) {
  const ir::PlanError found = ir::takePayload(std::move(error));
  if (found.infeasible()) {
    const auto sizes = formatApart(found.infeasible()->smallestBudget, found.infeasible()->budget);
    const bool isHost = found.infeasible()->space == ir::spaceName(ir::Space::kHost);
    ir::PlanError infeasible(
        ir::ErrorCode::kInfeasible,
        "the plan's decisions need " + sizes.first + " of the " + found.infeasible()->space +
            ", expected at most its " + (isHost ? "limit of " : "budget of ") + sizes.second +
            "; decide otherwise, or plan anew with these rows pinned ('stowage plan "
            "--from')");
    return ir::makeError(infeasible.at({.file = flags.plan}).because(*found.infeasible()));
  }
  llvm::StringRef text(found.text());
  for (const std::string& pass : passes::allPassNames()) {
    if (text.consume_front(pass + " failed: ")) break;
  }
  ir::PlanError problem(
      found.code() == ir::ErrorCode::kInvalidArgument ? ir::ErrorCode::kPlanMismatch : found.code(),
      text.str());
  problem.at(found.location().file.empty() ? ir::SourceLocation{.file = flags.plan}
                                           : found.location());
  problem.notesOf(found);
  return ir::makeError(std::move(problem));
}

VerbResult runLower(const LowerFlags& flags) {
  // Writing over the plan that was read is what this verb is for.
  const bool replace = flags.replace || llvm::sys::fs::equivalent(flags.output, flags.plan);
  if (ir::Error error = checkIsNoInput(flags.output, {flags.graph, flags.costs})) return error;
  if (ir::Error error = checkWritable(flags.output, replace)) return error;
  ir::Expected<LoadedPlan> plan = loadPlan(flags.plan, flags.graph);
  if (!plan) return plan.takeError();
  if (ir::Error error = checkIsNoInput(flags.output, filesOfPlan(*plan))) return error;
  ir::Expected<PlanningInputs> inputs = makeInputs(flags, *plan);
  if (!inputs) return inputs.takeError();
  ir::Expected<passes::PlannedStep> planned = lowerAgain(*plan, *inputs);
  if (!planned) return inDecisions(planned.takeError(), flags);
  CommonFlags common = flags;
  common.replace = replace;
  return writePlanOutput({.inputs = *inputs,
                          .planned = *planned,
                          .graphPath = plan->graphPath,
                          .planPath = flags.output,
                          .embed = plan->file.graph.text.has_value(),
                          .flags = common});
}

}  // namespace

Verb addLowerVerb(CLI::App& app) {
  auto flags = std::make_shared<LowerFlags>();
  CLI::App* command = app.add_subcommand(
      "lower", "make a new schedule from a plan's edited decisions, without planning");
  command->add_option("plan", flags->plan, "plan file")->required();
  command->add_option("--graph", flags->graph,
                      "the captured step, where the plan does not say or embed it");
  CLI::Option* costs = command->add_option(
      "--costs", flags->costs,
      "costs measured by 'stowage profile'; default: those that the plan was made from");
  command
      ->add_flag("--estimate", flags->estimate,
                 "go on with the profile's estimate where the plan's costs are not at hand")
      ->excludes(costs);
  command
      ->add_option("-o,--output", flags->output, "plan file to write; may be the one that was read")
      ->required();
  addCommonFlags(*command, *flags, /*writesFiles=*/true);
  return {.command = command, .run = [flags] { return runLower(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
