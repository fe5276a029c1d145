// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/plan_help.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "passes/plan_step.h"
#include "tools/cli/progress.h"
#include "tools/planning/planning_flags.h"

namespace stowage::tools {

namespace {

using Json = nlohmann::ordered_json;
using planner::Change;

constexpr size_t kMostLines = 5;
constexpr int64_t kNoticed = 1000;  // a part of the step

/// Whole steps are recorded anew when their numbers change, so those are not advised then.
std::optional<LaunchTip> findLaunchTip(const LoadedPlan& plan, const ir::CostTable& table,
                                       Nanoseconds step) {
  constexpr int64_t kClearly = 20;  // a part of the step
  const bool mayTry = plan.file.target.device == ir::DeviceKind::kCuda &&
                      plan.file.schedule.graphMode == ir::GraphMode::kNone;
  if (!mayTry) return std::nullopt;
  std::optional<LaunchTip> best;
  for (const ir::GraphMode mode : {ir::GraphMode::kNoUpdate, ir::GraphMode::kWhole}) {
    if (mode == ir::GraphMode::kWhole && !plan.graph.scalars().empty()) continue;
    if (ir::Error illegal = passes::checkGraphMode(plan.graph, mode)) {
      llvm::consumeError(std::move(illegal));
      continue;
    }
    ir::Expected<ir::NodeCosts> costs = ir::resolveCosts(plan.graph, table, mode);
    if (!costs) {
      llvm::consumeError(costs.takeError());
      continue;
    }
    const Nanoseconds sum = costs->totalTime();
    if (sum < (best ? best->step : step - Nanoseconds(step.value() / kClearly))) best = {mode, sum};
  }
  return best;
}

/// What unlimited memory would save of the plan's own step, if that is the one explained.
Nanoseconds mostSaved(const LoadedPlan& plan, const planner::PlanExplanation& explained) {
  const ir::Prediction& claim = plan.file.schedule.predicted;
  return claim.stepTime == explained.stepTime ? claim.stepTime - claim.computeTime : claim.stepTime;
}

/// The plan's question: its graph, costs, limit of the host and pinned rows.
ir::Expected<planner::Problem> problemOf(const LoadedPlan& plan, const ir::CostTable& costs) {
  passes::PlanStepOptions options;
  takeLimits(plan.file, options);
  ir::Expected<planner::Problem> problem =
      planner::makeProblem(plan.graph, plan.file.target, costs, options.allowed, options.limits, {},
                           plan.file.schedule.graphMode);
  if (!problem) return problem.takeError();
  for (const ir::DecisionRow& row : plan.file.schedule.decisions) {
    if (row.pinned) problem->pinnedRows.push_back(row);
  }
  return problem;
}

std::string describeMore(const planner::WhatIf& more) {
  constexpr double kGiga = 1e9;
  switch (more.change) {
    case Change::kAgain:
      return "planning again";
    case Change::kLink:
      return fmt::format("a link twice as fast ({:.1f} GB/s more)",
                         static_cast<double>(more.rate.value()) / kGiga);
    case Change::kMemory:
      return formatBytes(more.bytes) + " more of the device";
    case Change::kHostMemory:
      return "no limit of the host";
  }
  return "";
}

std::string describeLine(const HelpLine& line) {
  const std::string time = formatDuration(line.saved());
  if (line.more) {
    return describeMore(*line.more) + ": " + (line.more->isAtMost ? "up to " : "at least ") + time +
           " a step less";
  }
  return fmt::format("no copies of {} ({} in {} tensor{}): up to {} a step less", line.group->kind,
                     formatBytes(line.group->bytes), line.group->storages,
                     line.group->storages == 1 ? "" : "s", time);
}

}  // namespace

ir::Expected<PlanHelp> findHelp(const LoadedPlan& plan, const ir::CostTable& costs,
                                const planner::PlanExplanation& explained,
                                const CommonFlags& flags) {
  PlanHelp help{.tip = findLaunchTip(plan, costs, explained.stepTime), .lines = {}};
  help.hasLaunchWaits = explained.launchWaits > Nanoseconds(0);
  const Nanoseconds noticed(explained.stepTime.value() / kNoticed);
  const Nanoseconds most = mostSaved(plan, explained);
  const bool hasNoLoss =
      explained.waiting == Nanoseconds(0) && explained.recomputeTime == Nanoseconds(0);
  help.isKernels = hasNoLoss || most <= noticed;
  if (help.isKernels) return help;
  const Waiting waiting(!flags.quiet, "asking the planner what would help");
  ir::Expected<planner::Problem> problem = problemOf(plan, costs);
  if (!problem) return problem.takeError();
  ir::Expected<std::vector<planner::WhatIf>> answers =
      planner::askWhatIf(*problem, plan.file.budget, explained.stepTime, plan.file.stalls.ranks);
  if (!answers) return answers.takeError();
  // Planned again with other costs, any plan would be another one.
  const bool isSame = costs.source == plan.file.costs.source;
  for (const planner::WhatIf& more : *answers) {
    if (isSame || more.change != Change::kAgain) help.lines.push_back({.more = more, .group = {}});
  }
  for (const planner::CopiedGroup& group : explained.copied) {
    if (group.atMost > noticed) help.lines.push_back({.more = {}, .group = group});
  }
  std::stable_sort(help.lines.begin(), help.lines.end(),
                   [](const HelpLine& a, const HelpLine& b) { return a.saved() > b.saved(); });
  if (help.lines.size() > kMostLines) help.lines.resize(kMostLines);
  return help;
}

void printHelp(const PlanHelp& help, llvm::raw_ostream& os) {
  if (help.tip) {
    os << "helps      'stowage plan --launch " << ir::graphModeName(help.tip->mode) << "': from "
       << formatDuration(help.tip->step) << " a step on, by what its ops take\n";
  }
  if (help.isKernels) {
    os << "helps      nothing" << (help.tip ? " else" : "")
       << ": the step takes as long as its kernels"
       << (help.hasLaunchWaits ? " and their launch overhead\n" : "\n");
    return;
  }
  for (const HelpLine& line : help.lines) os << "helps      " << describeLine(line) << '\n';
  if (help.lines.empty()) {
    os << "helps      neither a faster link nor a tenth more memory; 'stowage sweep' shows what "
          "larger budgets bring\n";
  }
}

Json helpJson(const PlanHelp& help) {
  Json list = Json::array();
  if (help.tip) {
    list.push_back({{"launch", ir::graphModeName(help.tip->mode)},
                    {"step_at_best_ns", help.tip->step.value()}});
  }
  for (const HelpLine& line : help.lines) {
    Json one;
    if (line.more) {
      one["more"] = planner::changeName(line.more->change);
      if (line.more->rate.value() > 0) one["bytes_per_second"] = line.more->rate.value();
      if (line.more->bytes.value() > 0) one["bytes"] = line.more->bytes.value();
    } else {
      one["no_copies_of"] = line.group->kind;
      one["storages"] = line.group->storages;
      one["bytes"] = line.group->bytes.value();
    }
    one["saved_ns"] = line.saved().value();
    one["at_most"] = line.group.has_value() || line.more->isAtMost;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace stowage::tools
