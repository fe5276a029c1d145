// SPDX-License-Identifier: Apache-2.0
//
// stowage verify plan.json: proves the plan again, from the bytes of the file, by the verifier's
// rules.
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "ir/verify.h"
#include "tools/exit_code.h"
#include "tools/load_files.h"
#include "tools/verbs.h"

namespace stowage::tools {

namespace {

struct VerifyFlags : CommonFlags {
  std::string plan;
  std::string graph;
  std::string costs;
};

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
    llvm::outs() << json.dump(2) << '\n';
  } else {
    for (const ir::Violation& violation : violations) {
      llvm::outs() << flags.plan << ": V" << violation.rule << ": " << violation.message << '\n';
    }
    llvm::outs() << "verified   " << schedule.commands.size() << " commands, " << violations.size()
                 << (violations.size() == 1 ? " violation\n" : " violations\n");
  }
  return violations.empty() ? kExitYes : kExitNo;
}

VerbResult runVerify(const VerifyFlags& flags) {
  ir::Expected<LoadedPlan> plan = loadPlan(flags.plan, flags.graph);
  if (!plan) return plan.takeError();
  std::optional<ir::NodeCosts> costs;
  if (!flags.costs.empty()) {
    ir::Expected<planner::CostFile> file = loadCosts(flags.costs);
    if (!file) return file.takeError();
    const std::string different = differentCosts(plan->file, flags.costs, file->table);
    if (!different.empty()) remark(different, flags);
    ir::Expected<ir::NodeCosts> resolved = ir::resolveCosts(plan->graph, file->table);
    if (!resolved) return inInput(resolved.takeError(), flags.costs);
    costs = std::move(*resolved);
  }
  const ir::VerifyInput input = {.graph = plan->graph,
                                 .schedule = plan->file.schedule,
                                 .target = plan->file.target,
                                 .costs = costs ? &*costs : nullptr,
                                 .budget = plan->file.budget};
  return answer(flags, plan->file.schedule, ir::verify(input));
}

}  // namespace

Verb addVerifyVerb(CLI::App& app) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command =
      app.add_subcommand("verify", "prove a plan again, from the bytes of its file");
  command->add_option("plan", flags->plan, "plan file")->required();
  command->add_option("--graph", flags->graph,
                      "the captured step, where the plan does not say or embed it");
  command->add_option("--costs", flags->costs, "costs, to check temporaries and claimed times too");
  addCommonFlags(*command, *flags, /*writesFiles=*/false);
  return {.command = command, .run = [flags] { return runVerify(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
