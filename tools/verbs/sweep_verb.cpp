// SPDX-License-Identifier: Apache-2.0
//
// stowage sweep step.stow --budgets 20%peak..100%peak --svg sweep.svg: what each budget costs in
// step time, so that one can be chosen; as a table, as JSON, as a picture.
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "ir/base/format_apart.h"
#include "planner/report/plan_summary.h"
#include "planner/targets/roofline.h"
#include "tools/cli/budget_flag.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/printable_stream.h"
#include "tools/cli/progress.h"
#include "tools/files/load_files.h"
#include "tools/files/whole_file.h"
#include "tools/planning/planning_flags.h"
#include "tools/planning/sweep_chart.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

using Json = nlohmann::ordered_json;

struct SweepFlags : PlanningFlags {
  std::string budgets = "30%peak..100%peak";
  int steps = 8;
  std::string svg;
};

/// One row of the table: a plan, or the smallest budget that works.
struct Row {
  Bytes budget;
  std::optional<passes::PlannedStep> planned;
  Bytes smallestBudget;
  Bytes outside;      // what lies beside the arena, where the budget asked for holds it
  std::string space;  // that the smallest budget is about
};

ir::Expected<Row> planAt(passes::StepPlanner& planner, Bytes budget, Bytes outside) {
  Row row;
  row.budget = budget;
  row.outside = outside;
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
    const bool isHost = row.space != ir::spaceName(ir::Space::kDevice);
    const auto [budget, smallest] = formatApart(
        row.budget + row.outside, row.smallestBudget + (isHost ? Bytes(0) : row.outside));
    os << fmt::format("{:>12}  nothing fits; smallest {} budget that works: {}\n", budget,
                      row.space, smallest);
    return;
  }
  const ir::Prediction& claim = row.planned->schedule.predicted;
  const planner::PlanCounts counts = planner::countPlan(row.planned->graph, row.planned->schedule);
  os << fmt::format("{:>12}  {:>10}  {:>8}  {:>8}  {:>11}  {:>11}  {:>7}  {:>9}  {:>9}\n",
                    formatBytes(row.budget + row.outside), formatDuration(claim.stepTime),
                    planner::formatExcess(claim.stepTime, claim.computeTime, true),
                    planner::formatExcess(claim.stepTime, claim.bound, true),
                    formatBytes(claim.bytesOut), formatBytes(claim.bytesIn),
                    counts.offloadedActivations + counts.offloadedStates, counts.recomputed,
                    counts.reusedInPlace);
}

Json toJson(const Row& row, const PlanningInputs& inputs) {
  if (!row.planned) {
    Json infeasible = {{"fits", false},
                       {"budget_bytes", row.budget.value()},
                       {"space", row.space},
                       {"smallest_budget_bytes", row.smallestBudget.value()}};
    if (row.outside > Bytes(0)) infeasible["outside_bytes"] = row.outside.value();
    return infeasible;
  }
  return planner::planSummaryJson({.graph = row.planned->graph,
                                   .schedule = row.planned->schedule,
                                   .budget = row.budget,
                                   .keepAll = inputs.keepAll,
                                   .stalls = row.planned->result.timetable.stalls,
                                   .costs = summaryCosts(inputs),
                                   .planNeeded = row.planned->result.planNeeded});
}

SweepPoint toPoint(const Row& row) {
  SweepPoint point{.budget = row.budget, .plan = std::nullopt};
  if (row.planned) {
    const ir::Prediction& claim = row.planned->schedule.predicted;
    point.plan = {
        .stepTime = claim.stepTime, .bound = claim.bound, .computeTime = claim.computeTime};
  }
  return point;
}

void printHeading(const PlanningInputs& inputs, llvm::raw_ostream& os) {
  if (inputs.costs.source == ir::CostSource::kRoofline) {
    os << "estimated  " << planner::describeEstimate(inputs.target) << '\n';
  }
  os << "unplanned peak " << formatBytes(inputs.keepAll) << '\n';
  os << "      budget   step time   against     above    bytes out     bytes in    moved  "
        "recompute   in place\n";
  os << "                         unlimited     bound\n";
}

ir::Error checkPicture(const SweepFlags& flags) {
  if (flags.svg.empty()) return ir::success();
  if (flags.svg == "-") {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "--svg: found '-', expected a file: the table goes to standard output");
  }
  if (ir::Error error = checkIsNoInput(flags.svg, {flags.graph, flags.costs})) return error;
  return checkWritable(flags.svg, flags.replace);
}

ir::Error writePicture(const SweepFlags& flags, const PlanningInputs& inputs,
                       std::vector<SweepPoint> points) {
  if (flags.svg.empty()) return ir::success();
  const SweepChart chart = {.title = "'" + inputs.graph.name() + "': step time by budget, costs " +
                                     ir::costSourceName(inputs.costs.source),
                            .unplanned = inputs.keepAll,
                            .points = std::move(points)};
  return writeWholeFile(flags.svg, flags.replace,
                        [&](llvm::raw_ostream& os) { drawSweep(chart, os); });
}

VerbResult runSweep(const SweepFlags& flags) {
  if (ir::Error error = checkPicture(flags)) return error;
  ir::Expected<std::vector<Size>> sizes = parseSizeList(flags.budgets, flags.steps);
  if (!sizes) return sizes.takeError();
  ir::Expected<PlanningInputs> inputs = readPlanningInputs(flags);
  if (!inputs) return inputs.takeError();
  addGraphMemory(*inputs);
  ir::Expected<passes::StepPlanner> planner =
      passes::StepPlanner::make(inputs->graph, inputs->target, inputs->costs, inputs->options);
  if (!planner) return planner.takeError();
  Progress progress(!flags.quiet);
  Json rows = Json::array();
  llvm::raw_ostream& os = answers();
  std::vector<SweepPoint> points;
  if (!flags.json) printHeading(*inputs, os);
  for (const Size& size : *sizes) {
    ir::Expected<Bytes> asked = resolveSweptBudget(size, *inputs);
    if (!asked) return asked.takeError();
    progress.show("planning " + formatBytes(*asked));
    const Bytes outside = size.withOutside ? inputs->target.outside : Bytes(0);
    ir::Expected<Row> row = planAt(*planner, *asked, outside);
    if (!row) return row.takeError();
    points.push_back(toPoint(*row));
    if (flags.json) {
      rows.push_back(toJson(*row, *inputs));
    } else {
      printRow(*row, os);
    }
  }
  remark(describeOtherTorch(inputs->graph), flags);
  const auto fits = [&](const Size& size) {
    return size.of != Size::Of::kPeak && size.resolve(wholesOf(*inputs)) >= inputs->keepAll;
  };
  if (std::all_of(sizes->begin(), sizes->end(), fits)) {
    remark(
        "the step fits every one of these budgets without a plan; --budgets "
        "30%peak..100%peak takes shares of what it needs instead of the device",
        flags);
  }
  const bool fitsSome = std::any_of(points.begin(), points.end(),
                                    [](const SweepPoint& point) { return point.plan.has_value(); });
  if (ir::Error error = writePicture(flags, *inputs, std::move(points))) return error;
  if (flags.json) printJson({{"unplanned_bytes", inputs->keepAll.value()}, {"budgets", rows}});
  if (!flags.svg.empty() && !flags.json) os << "wrote      " << flags.svg << '\n';
  return fitsSome ? kExitYes : kExitNo;
}

}  // namespace

Verb addSweepVerb(CLI::App& app) {
  auto flags = std::make_shared<SweepFlags>();
  CLI::App* command = app.add_subcommand("sweep", "plan a step at several budgets and compare");
  addPlanningFlags(*command, *flags);
  command
      ->add_option(
          "--budgets", flags->budgets,
          "a range such as 30%peak..100%peak, 4GiB..24GiB or, of the memory that the target "
          "states, 20%..100%; or a comma list")
      ->capture_default_str();
  command->add_option("--steps", flags->steps, "budgets in a range")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  command->add_option("--svg", flags->svg, "picture to write: step time and bound over budget");
  addCommonFlags(*command, *flags, /*writesFiles=*/true);
  return {.command = command, .run = [flags] { return runSweep(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
