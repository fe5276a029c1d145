// SPDX-License-Identifier: Apache-2.0
//
// stowage verify plan.json: proves the plan again, from the bytes of the file, by the verifier's
// rules; and recomputes its times from --costs, else from the costs that it was made from.
#include <llvm/ADT/STLExtras.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "ir/printable.h"
#include "ir/verify.h"
#include "planner/timeline.h"
#include "tools/exit_code.h"
#include "tools/json_answer.h"
#include "tools/load_files.h"
#include "tools/printable_stream.h"
#include "tools/verbs.h"

namespace stowage::tools {

namespace {

struct VerifyFlags : CommonFlags {
  std::string plan;
  std::string graph;
  std::string costs;
};

constexpr size_t kMostViolations = 100;

VerbResult answer(const VerifyFlags& flags, const ir::Schedule& schedule,
                  const std::vector<ir::Violation>& violations) {
  if (flags.json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const ir::Violation& violation : violations) {
      nlohmann::ordered_json row = {{"rule", violation.rule}, {"message", violation.message}};
      if (violation.command.isValid()) row["command"] = violation.command.raw();
      rows.push_back(std::move(row));
    }
    const nlohmann::ordered_json json = {{"commands", schedule.commands.size()},
                                         {"violations", rows}};
    printJson(json);
  } else {
    llvm::raw_ostream& os = answers();
    for (size_t i = 0; i < violations.size() && i < kMostViolations; ++i) {
      os << flags.plan << ": V" << violations[i].rule << ": "
         << ir::printable(violations[i].message) << '\n';
    }
    if (violations.size() > kMostViolations)
      os << "and " << violations.size() - kMostViolations << " more, which --json lists\n";
    os << "verified   " << schedule.commands.size() << " commands, " << violations.size()
       << (violations.size() == 1 ? " violation\n" : " violations\n");
  }
  return violations.empty() ? kExitYes : kExitNo;
}

/// Those of --costs, else the plan's; nothing, with a remark, where the plan's are not at hand.
ir::Expected<std::optional<ir::NodeCosts>> readCosts(const VerifyFlags& flags,
                                                     const LoadedPlan& plan) {
  PlansCosts found;
  if (flags.costs.empty()) {
    ir::Expected<PlansCosts> costs = findPlansCosts(plan);
    if (!costs) return costs.takeError();
    found = std::move(*costs);
  } else {
    ir::Expected<planner::CostFile> file = loadCosts(flags.costs);
    if (!file) return file.takeError();
    const std::string different = differentCosts(plan.file, flags.costs, file->table);
    remark(different, flags);
    found = {.file = std::move(*file), .path = flags.costs, .missing = ""};
  }
  if (!found.file) {
    remark(flags.plan + ": temporaries and times are not checked: the plan was made from costs " +
               "that were " + ir::costSourceName(plan.file.costs.source) + ", " + found.missing +
               "; --costs names the file",
           flags);
    return std::optional<ir::NodeCosts>();
  }
  ir::Expected<ir::NodeCosts> resolved =
      ir::resolveCosts(plan.graph, found.file->table, plan.file.schedule.graphMode);
  if (!resolved) return notMeasured(resolved.takeError(), stepPath(plan), found.path);
  return std::optional<ir::NodeCosts>(std::move(*resolved));
}

/// V30 knows by itself which times are impossible; this is the time that the schedule takes.
void checkStepTime(const LoadedPlan& plan, const ir::NodeCosts& costs,
                   std::vector<ir::Violation>& violations) {
  const ir::Schedule& schedule = plan.file.schedule;
  const auto hasRule = [&](int rule) {
    return std::any_of(violations.begin(), violations.end(),
                       [&](const ir::Violation& violation) { return violation.rule == rule; });
  };
  // Only what has ids in range and waits for what was issued before has a time.
  const bool hasTime = !hasRule(1) && !hasRule(14);
  if (schedule.predicted == ir::Prediction{} || !hasTime) return;
  const Nanoseconds found =
      planner::computeTimeline(plan.graph, schedule, costs, plan.file.target.alignBytes).stepTime;
  const Nanoseconds claimed = schedule.predicted.stepTime;
  if (found == claimed) return;
  const auto next = std::find_if(violations.begin(), violations.end(),
                                 [](const ir::Violation& other) { return other.rule > 30; });
  violations.insert(next, {.rule = 30,
                           .message = "step of " + std::to_string(claimed.value()) +
                                      " ns claimed, expected " + std::to_string(found.value()),
                           .command = {}});
}

/// What only a finished plan claims: no schedule is faster than its ops, and compute waits when it
/// does not work.
void checkFigures(const planner::PlanFile& plan, const ir::NodeCosts* costs,
                  std::vector<ir::Violation>& violations) {
  const ir::Prediction& claim = plan.schedule.predicted;
  if (claim == ir::Prediction{}) return;
  const auto violate = [&](std::string message) {
    violations.push_back({.rule = 30, .message = std::move(message), .command = {}});
  };
  if (claim.bound < claim.computeTime) {
    violate("bound of " + std::to_string(claim.bound.value()) +
            " ns claimed, expected at least the compute time, " +
            std::to_string(claim.computeTime.value()) + " ns");
  }
  const planner::Stalls& stalls = plan.stalls;
  int64_t room = claim.stepTime.value();
  for (size_t i = 0; costs != nullptr && i < costs->nodes.size(); ++i) {
    room -= std::min(room, costs->work(ir::NodeId(i)).value());
  }
  for (const Nanoseconds part : {stalls.deviceToHost, stalls.hostToDevice, stalls.disk}) {
    if (part.value() > room) {
      violate("stall of " + std::to_string(part.value()) + " ns claimed, expected at most " +
              std::to_string(room) + ", what compute and other stalls leave of the step");
    }
    room -= std::min(room, part.value());
  }
  llvm::stable_sort(violations,
                    [](const ir::Violation& x, const ir::Violation& y) { return x.rule < y.rule; });
}

VerbResult runVerify(const VerifyFlags& flags) {
  ir::Expected<LoadedPlan> plan = loadPlan(flags.plan, flags.graph);
  if (!plan) return plan.takeError();
  ir::Expected<std::optional<ir::NodeCosts>> costs = readCosts(flags, *plan);
  if (!costs) return costs.takeError();
  const ir::NodeCosts* known = *costs ? &**costs : nullptr;
  std::vector<ir::Violation> violations = ir::verify({.graph = plan->graph,
                                                      .schedule = plan->file.schedule,
                                                      .target = plan->file.target,
                                                      .costs = known,
                                                      .budget = plan->file.budget,
                                                      .hostLimit = plan->file.hostLimit});
  if (known != nullptr) checkStepTime(*plan, *known, violations);
  checkFigures(plan->file, known, violations);
  return answer(flags, plan->file.schedule, violations);
}

}  // namespace

Verb addVerifyVerb(CLI::App& app) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command =
      app.add_subcommand("verify", "prove a plan again, from the bytes of its file");
  command->add_option("plan", flags->plan, "plan file")->required();
  command->add_option("--graph", flags->graph,
                      "the captured step, where the plan does not say or embed it");
  command->add_option("--costs", flags->costs,
                      "costs, to check temporaries and claimed times with; default: those "
                      "that the plan was made from");
  addCommonFlags(*command, *flags, /*writesFiles=*/false);
  return {.command = command, .run = [flags] { return runVerify(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
