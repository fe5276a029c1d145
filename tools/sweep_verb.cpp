// SPDX-License-Identifier: Apache-2.0
//
// stowage sweep step.stow --budgets 20%peak..100%peak: what each budget costs in step time, so that
// one can be chosen.
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/budget_flag.h"
#include "tools/exit_code.h"
#include "tools/plan_summary.h"
#include "tools/planning_flags.h"
#include "tools/verbs.h"

namespace stowage::tools {

namespace {

using Json = nlohmann::ordered_json;

struct SweepFlags : PlanningFlags {
  std::string budgets = "30%peak..100%peak";
  int steps = 8;
};

/// One row of the table: a plan, or the "no" with the smallest budget that works.
struct Row {
  Bytes budget;
  std::optional<passes::PlannedStep> planned;
  Bytes smallestBudget;
  std::string space;  // that the smallest budget is about
};

ir::Expected<Row> planAt(passes::StepPlanner& planner, Bytes budget) {
  Row row;
  row.budget = budget;
  ir::Expected<passes::PlannedStep> planned = planner.plan(budget);
  if (planned) {
    row.planned = std::move(*planned);
    return row;
  }
  ir::PlanError error = ir::takePayload(planned.takeError());
  if (!error.infeasible()) return ir::makeError(std::move(error));
  row.space = error.infeasible()->space;
  row.smallestBudget = error.infeasible()->smallestBudget;
  return row;
}

void printRow(const Row& row, llvm::raw_ostream& os) {
  if (!row.planned) {
    os << fmt::format("{:>12}  nothing fits; smallest {} budget that works: {}\n",
                      formatBytes(row.budget), row.space, formatBytes(row.smallestBudget));
    return;
  }
  const ir::Prediction& claim = row.planned->schedule.predicted;
  const PlanCounts counts = countPlan(row.planned->graph, row.planned->schedule);
  os << fmt::format("{:>12}  {:>10}  {:>8}  {:>8}  {:>11}  {:>11}  {:>7}  {:>7}  {:>9}\n",
                    formatBytes(row.budget), formatDuration(claim.stepTime),
                    formatExcess(claim.stepTime, claim.computeTime, true),
                    formatExcess(claim.stepTime, claim.bound, true), formatBytes(claim.bytesOut),
                    formatBytes(claim.bytesIn),
                    counts.offloadedActivations + counts.offloadedStates, counts.recomputed,
                    counts.takenOver);
}

Json toJson(const Row& row, const PlanningInputs& inputs) {
  if (!row.planned) {
    return {{"fits", false},
            {"budget_bytes", row.budget.value()},
            {"space", row.space},
            {"smallest_budget_bytes", row.smallestBudget.value()}};
  }
  return planSummaryJson({.graph = row.planned->graph,
                          .schedule = row.planned->schedule,
                          .budget = row.budget,
                          .keepAll = inputs.keepAll,
                          .stalls = row.planned->result.timetable.stalls,
                          .costs = inputs.costs.source,
                          .planNeeded = row.planned->result.planNeeded});
}

VerbResult runSweep(const SweepFlags& flags) {
  ir::Expected<std::vector<SizeFlag>> sizes = parseSizeList(flags.budgets, flags.steps);
  if (!sizes) return sizes.takeError();
  ir::Expected<PlanningInputs> inputs = readPlanningInputs(flags);
  if (!inputs) return inputs.takeError();
  ir::Expected<passes::StepPlanner> planner =
      passes::StepPlanner::make(inputs->graph, inputs->target, inputs->costs, inputs->options);
  if (!planner) return planner.takeError();
  Progress progress(!flags.quiet);
  Json rows = Json::array();
  llvm::raw_ostream& os = llvm::outs();
  if (!flags.json) {
    os << "unplanned peak " << formatBytes(inputs->keepAll) << '\n';
    os << "      budget   step time   against     above    bytes out     bytes in    moved   "
          "redone  taken over\n";
    os << "                         unlimited     bound\n";
  }
  for (const SizeFlag& size : *sizes) {
    const int64_t align = inputs->target.alignBytes;
    const Bytes asked = size.resolve({.device = inputs->target.memory, .peak = inputs->keepAll});
    progress.show("planning " + formatBytes(asked));
    ir::Expected<Row> row = planAt(*planner, Bytes(asked.value() / align * align));
    if (!row) return row.takeError();
    if (flags.json) {
      rows.push_back(toJson(*row, *inputs));
    } else {
      printRow(*row, os);
    }
  }
  const auto fits = [&](const SizeFlag& size) {
    return size.of != SizeFlag::Of::kPeak &&
           size.resolve({.device = inputs->target.memory, .peak = inputs->keepAll}) >=
               inputs->keepAll;
  };
  if (std::all_of(sizes->begin(), sizes->end(), fits)) {
    remark(
        "the step fits every one of these budgets without a plan; --budgets "
        "30%peak..100%peak takes shares of what it needs instead of the device",
        flags);
  }
  if (flags.json)
    os << Json{{"unplanned_bytes", inputs->keepAll.value()}, {"budgets", rows}}.dump(2) << '\n';
  return kExitYes;
}

}  // namespace

Verb addSweepVerb(CLI::App& app) {
  auto flags = std::make_shared<SweepFlags>();
  CLI::App* command = app.add_subcommand("sweep", "plan a step at several budgets and compare");
  addPlanningFlags(*command, *flags);
  command
      ->add_option("--budgets", flags->budgets,
                   "a range such as 30%peak..100%peak or 4GiB..24GiB, or a comma list")
      ->capture_default_str();
  command->add_option("--steps", flags->steps, "budgets in a range")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  addCommonFlags(*command, *flags, /*writesFiles=*/false);
  return {.command = command, .run = [flags] { return runSweep(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
