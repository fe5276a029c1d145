// SPDX-License-Identifier: Apache-2.0
//
// stowage plan step.stow --budget 24GiB -o plan.json: the verdict first, then the file.
#include <fmt/format.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "ir/text/printer.h"
#include "passes/ways_out.h"
#include "planner/files/cost_json.h"
#include "planner/files/plan_json.h"
#include "planner/report/plan_summary.h"
#include "tools/cli/budget_flag.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/progress.h"
#include "tools/files/load_files.h"
#include "tools/files/whole_file.h"
#include "tools/machine/this_machine.h"
#include "tools/planning/plan_output.h"
#include "tools/planning/planning_flags.h"
#include "tools/planning/policies.h"
#include "tools/planning/time_limit.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

struct PlanFlags : PlanningFlags {
  std::string budget;
  std::string from;
  std::string output;
  std::string policy;
  double timeLimit = 0;  // seconds; 0: none
  bool compare = false;
  bool embed = false;
};

/// --from: the pinned rows of an edited plan become constraints, in that plan's order; its limit of
/// the host holds where --host does not set another one.
ir::Error readPinnedRows(const PlanFlags& flags, PlanningInputs& inputs) {
  if (flags.from.empty()) return ir::success();
  ir::Expected<LoadedPlan> plan = loadPlan(flags.from, flags.graph);
  if (!plan) return plan.takeError();
  for (const ir::DecisionRow& row : plan->file.schedule.decisions) {
    if (row.pinned) inputs.options.pinnedRows.push_back(row);
  }
  inputs.options.orders = {plan->order};
  if (flags.launch.empty()) inputs.options.graphMode = plan->file.schedule.graphMode;
  passes::PlanStepOptions given = inputs.options;
  takeLimits(plan->file, given);
  if (flags.host.empty()) inputs.options.limits.host = given.limits.host;
  if (flags.disk.empty()) inputs.options.limits.disk = given.limits.disk;
  inputs.options.allowed.disk = given.allowed.disk;
  return ir::success();
}

ir::Expected<std::optional<Policy>> readPolicy(const PlanFlags& flags) {
  if (flags.policy.empty()) return std::nullopt;
  ir::Expected<Policy> policy = parsePolicy(flags.policy);
  if (!policy) return policy.takeError();
  if (*policy == Policy::kAll) return std::nullopt;
  return *policy;
}

ir::Expected<std::vector<PolicyAnswer>> compare(const PlanFlags& flags,
                                                const PlanningInputs& inputs) {
  if (!flags.compare) return std::vector<PolicyAnswer>();
  return comparePolicies(inputs, flags.quiet);
}

/// What helps a step that cannot be one graph.
ir::Error suggestLaunch(ir::Error error) {
  ir::PlanError found = ir::takePayload(std::move(error));
  if (found.code() == ir::ErrorCode::kInfeasible && !found.infeasible()) {
    found.note("--launch none launches every op of every step by itself");
  }
  return ir::makeError(std::move(found));
}

/// Where an op over many parameters needs the most, smaller buckets are what helps.
ir::Error suggestBuckets(ir::Error error) {
  ir::PlanError found = ir::takePayload(std::move(error));
  const auto& infeasible = found.infeasible();
  const bool isListOp =
      infeasible && (llvm::StringRef(infeasible->peakNode).contains("_foreach_") ||
                     llvm::StringRef(infeasible->peakNode).contains("_fused_"));
  if (isListOp) {
    found.note(
        "this op works on a bucket of parameters at once: 'stowage capture --bucket' makes "
        "the buckets smaller (64MiB by default)");
  }
  return ir::makeError(std::move(found));
}

/// "  best 13.06 ms, bound 7.78 ms (at most 67.9 % above)"
std::string describeSearch(Nanoseconds best, Nanoseconds bound) {
  return fmt::format("  best {}, bound {} (at most {} above)", formatDuration(best),
                     formatDuration(bound), planner::formatExcess(best, bound, /*sign=*/false));
}

ir::Expected<passes::PlannedStep> search(const PlanFlags& flags, std::optional<Policy> policy,
                                         PlanningInputs& inputs) {
  Waiting waiting(!flags.quiet, "planning for " + formatBytes(inputs.options.budget));
  inputs.options.isOver = TimeLimit(flags.timeLimit).isOver();
  inputs.options.found = [&](Nanoseconds best, Nanoseconds bound) {
    waiting.setNews(describeSearch(best, bound));
  };
  ir::Expected<passes::PlannedStep> planned =
      policy ? planBy(*policy, inputs)
             : passes::planStep(inputs.graph, inputs.target, inputs.costs, inputs.options);
  inputs.options.isOver = nullptr;
  inputs.options.found = nullptr;
  return planned;
}

/// What else would do; a policy leaves out all that a plan without it may do.
ir::Error nameWaysOut(ir::Error error, const PlanFlags& flags, bool hasPolicy,
                      const PlanningInputs& inputs) {
  ir::PlanError found = ir::takePayload(std::move(error));
  if (!found.infeasible()) return ir::makeError(std::move(found));
  const Waiting waiting(!flags.quiet, "looking for what else would do");
  passes::RefusedStep step = {.graph = inputs.graph,
                              .target = inputs.target,
                              .costs = inputs.costs,
                              .options = inputs.options,
                              .variations = {{"no --policy", inputs.options}},
                              .isByPolicy = hasPolicy};
  if (!hasPolicy) {
    ir::Expected<std::vector<passes::Variation>> variations =
        passes::findVariations(inputs.graph, inputs.options);
    if (!variations) return variations.takeError();
    step.variations = std::move(*variations);
  }
  ir::Expected<ir::PlanError> all = passes::addWaysOut(step, std::move(found));
  if (!all) return all.takeError();
  return ir::makeError(std::move(*all));
}

/// A plan for more than the device has may be a step on the way to one that fits.
std::string describeTooLarge(const PlanningInputs& inputs) {
  const ir::Target& target = inputs.target;
  const Bytes needed = inputs.options.budget + target.outside;
  if (target.device != ir::DeviceKind::kCuda || needed <= target.memory) return "";
  return "the budget of " + formatBytes(inputs.options.budget) + " and the " +
         formatBytes(target.outside) + " beside it are more than the " +
         formatBytes(target.memory) + " of target '" + target.profile +
         "': such a plan cannot run there";
}

/// Numbers that change are part of what is recorded.
std::string describeRecordings(const PlanningInputs& inputs) {
  const size_t numbers = inputs.graph.scalars().size();
  if (inputs.options.graphMode != ir::GraphMode::kWhole || numbers == 0) return "";
  return "the graph of the whole step is recorded anew in each step in which one of its " +
         std::to_string(numbers) +
         " step scalars changes, which takes longer than launching the step and is not predicted: "
         "--launch whole is for a constant learning rate and stowage_adamw; 'stowage run' says how "
         "often it recorded";
}

VerbResult runPlan(const PlanFlags& flags) {
  if (!flags.output.empty()) {
    if (ir::Error error = checkIsNoInput(flags.output, {flags.graph, flags.costs, flags.from}))
      return error;
    if (ir::Error error = checkWritable(flags.output, flags.replace)) return error;
  }
  ir::Expected<Size> size = parseSizeFlag(flags.budget);
  if (!size) return size.takeError();
  ir::Expected<PlanningInputs> inputs = readPlanningInputs(flags);
  if (!inputs) return inputs.takeError();
  if (ir::Error error = readPinnedRows(flags, *inputs)) return error;
  addGraphMemory(*inputs);
  ir::Expected<Bytes> budget = resolveBudget(*size, *inputs);
  if (!budget) return budget.takeError();
  inputs->options.budget = *budget;
  for (const std::string& what : {describeTooLarge(*inputs), describeRecordings(*inputs)}) {
    remark(what, flags);
  }
  ir::Expected<std::optional<Policy>> policy = readPolicy(flags);
  if (!policy) return policy.takeError();
  ir::Expected<passes::PlannedStep> planned = search(flags, *policy, *inputs);
  if (!planned) {
    ir::Error error = nameWaysOut(planned.takeError(), flags, policy->has_value(), *inputs);
    return suggestLaunch(suggestBuckets(countOutside(std::move(error), *size, *inputs)));
  }
  remark(describeOtherTorch(inputs->graph), flags);
  remark(describeHostLack(planned->schedule, inputs->target), flags);
  ir::Expected<std::vector<PolicyAnswer>> policies = compare(flags, *inputs);
  if (!policies) return policies.takeError();
  const PlanOutput output = {.inputs = *inputs,
                             .planned = *planned,
                             .graphPath = flags.graph,
                             .planPath = flags.output,
                             .embed = flags.embed,
                             .flags = flags,
                             .policies = std::move(*policies)};
  return writePlanOutput(output);
}

}  // namespace

Verb addPlanVerb(CLI::App& app) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command =
      app.add_subcommand("plan", "find the fastest schedule of a step that fits a budget");
  addPlanningFlags(*command, *flags);
  command
      ->add_option("--budget", flags->budget,
                   "bytes of the device arena: 24GiB, or 50%peak of the unplanned peak; for GPU "
                   "targets also 80% of the device, and device:24GiB for arena, context, kernels "
                   "and libraries together")
      ->required();
  command->add_option(
      "--from", flags->from,
      "an edited plan: its rows with \"pinned\": true are kept, the rest is planned again; its "
      "--host and --disk apply unless you give others");
  command->add_option("-o,--output", flags->output,
                      "plan file to write ('-': standard output); default: only the verdict");
  CLI::Option* policy = command->add_option(
      "--policy", flags->policy,
      "plan by a policy for all tensors: " + listPolicies() + "; default: each by itself");
  CLI::Option* compare = command->add_flag(
      "--compare", flags->compare, "also show the fastest step under each policy, at this budget");
  for (CLI::Option* option : {policy, compare}) {
    option->excludes("--allow");
    option->excludes("--from");
  }
  policy->excludes(compare)->excludes("--host-updates");
  command
      ->add_option("--time-limit", flags->timeLimit,
                   "seconds after which the fastest plan so far is the answer, as soon as there is "
                   "one; then it depends on how fast this machine plans; default: none")
      ->check(describeBadSeconds)
      ->excludes(compare);
  command->add_flag("--embed", flags->embed, "put the graph's text into the plan file");
  addCommonFlags(*command, *flags, /*writesFiles=*/true);
  return {.command = command, .run = [flags] { return runPlan(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
