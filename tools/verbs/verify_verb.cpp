// SPDX-License-Identifier: Apache-2.0
//
// stowage verify plan.json: proves the plan again, from the bytes of the file, by the verifier's
// rules; and recomputes its times from --costs, else from the costs that it was made from.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "ir/base/printable.h"
#include "planner/verdict/plan_verdict.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/printable_stream.h"
#include "tools/files/load_files.h"
#include "tools/verbs/verbs.h"

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

/// The plan's; or those of --costs, whatever they are: old claims are held against them.
ir::Expected<planner::PlansCosts> readCosts(const VerifyFlags& flags, const LoadedPlan& plan) {
  if (flags.costs.empty()) return findPlansCosts(plan);
  ir::Expected<planner::CostFile> file = loadCosts(flags.costs);
  if (!file) return file.takeError();
  file->table = planner::costsForPlan(plan.file, plan.graph, std::move(file->table));
  const std::string different = differentCosts(plan.file, flags.costs, file->table);
  remark(different, flags);
  return planner::PlansCosts{.file = std::move(*file), .path = flags.costs, .missing = ""};
}

VerbResult runVerify(const VerifyFlags& flags) {
  ir::Expected<LoadedPlan> plan = loadPlan(flags.plan, flags.graph);
  if (!plan) return plan.takeError();
  ir::Expected<planner::PlansCosts> costs = readCosts(flags, *plan);
  if (!costs) return costs.takeError();
  ir::Expected<planner::PlanVerdict> verdict = planner::judgePlan(plan->file, plan->graph, *costs);
  if (!verdict) return verdict.takeError();
  if (!verdict->unchecked.empty()) {
    remark(flags.plan + ": temporaries and times are not checked: the plan was made from costs " +
               "that were " + ir::costSourceName(plan->file.costs.source) + ", " +
               verdict->unchecked + "; --costs names the file",
           flags);
  }
  return answer(flags, plan->file.schedule, verdict->violations);
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
