// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/planner_bench.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Host.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "ir/costs/unplanned_peak.h"
#include "passes/plan_step.h"
#include "planner/plan.h"
#include "planner/targets/roofline.h"
#include "tools/bench/example_steps.h"
#include "tools/bench/planner_table.h"
#include "tools/bench/step_files.h"
#include "tools/cli/json_answer.h"

namespace stowage::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr llvm::StringLiteral kRoofline = "roofline";

/// A step to plan: an example, or a file.
struct Wanted {
  ExampleStep step;
  std::string path;  // of a file; "": an example
};

std::vector<WantedBudget> budgetsOfFiles() {
  return {{.percent = 80},
          {.percent = 60, .goal = {.of = Goal::Of::kBound, .most = 1.05}},
          {.percent = 35, .goal = {.of = Goal::Of::kBound, .most = 1.15}},
          {.percent = 25}};
}

std::vector<Wanted> listAll(const PlannerBenchFlags& flags) {
  std::vector<Wanted> all;
  if (!flags.program.empty()) {
    for (ExampleStep& example : exampleSteps()) all.push_back({std::move(example), ""});
  }
  if (flags.steps.empty()) return all;
  for (const std::string& name : listSteps(flags.steps)) {
    ExampleStep step = {.name = name, .model = "", .settings = {}, .budgets = budgetsOfFiles()};
    all.push_back({std::move(step), flags.steps + "/" + name + ".stow"});
  }
  return all;
}

/// The steps and budgets that --only names.
ir::Expected<std::vector<Wanted>> choose(const PlannerBenchFlags& flags) {
  std::vector<Wanted> all = listAll(flags);
  if (flags.only.empty()) return all;
  std::vector<Wanted> chosen;
  std::vector<bool> isUsed(flags.only.size(), false);
  for (Wanted& one : all) {
    const auto isNamed = [&](const WantedBudget& budget) {
      bool isFound = false;
      for (size_t i = 0; i < flags.only.size(); ++i) {
        const std::string& text = flags.only[i];
        if (text != one.step.name && text != one.step.name + ":" + budget.label()) continue;
        isUsed[i] = isFound = true;
      }
      return isFound;
    };
    llvm::erase_if(one.step.budgets, [&](const WantedBudget& budget) { return !isNamed(budget); });
    if (!one.step.budgets.empty()) chosen.push_back(one);
  }
  for (size_t i = 0; i < flags.only.size(); ++i) {
    if (isUsed[i]) continue;
    const auto nameOf = [](const Wanted& one) { return one.step.name; };
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        "--only: found '" + flags.only[i] + "', expected NAME or NAME:BUDGET with one of: " +
            llvm::join(llvm::to_vector<8>(llvm::map_range(listAll(flags), nameOf)), ", "));
  }
  return chosen;
}

struct Inputs {
  ir::Graph graph;
  ir::Target target;
  ir::CostTable costs;
};

ir::Expected<ir::CostTable> findCosts(const PlannerBenchFlags& flags, const std::string& name,
                                      const Inputs& inputs) {
  const std::string path = flags.costs + "/" + name + ".json";
  if (flags.costs == kRoofline || !llvm::sys::fs::exists(path)) {
    return planner::rooflineCosts(inputs.graph, inputs.target);
  }
  ir::Expected<ir::CostTable> costs = readStepCosts(path);
  if (!costs || planner::namesProfile(costs->device, inputs.target.profile)) return costs;
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       path + ": found costs of '" + costs->device +
                           "', expected those of the step's target, " + inputs.target.profile);
}

ir::Expected<Inputs> readInputs(const PlannerBenchFlags& flags, const Wanted& wanted) {
  ir::Expected<ir::Graph> graph =
      wanted.path.empty() ? captureExample(wanted.step, flags.program) : readStep(wanted.path);
  if (!graph) return graph.takeError();
  ir::Expected<ir::Target> target = planner::findTargetProfile(graph->provenance().target);
  if (!target) return target.takeError();
  target->deterministic = graph->provenance().deterministic;
  Inputs inputs{.graph = std::move(*graph), .target = std::move(*target), .costs = {}};
  ir::Expected<ir::CostTable> costs = findCosts(flags, wanted.step.name, inputs);
  if (!costs) return costs.takeError();
  inputs.costs = std::move(*costs);
  return inputs;
}

ir::Expected<BenchedStep> measureUnlimited(const Wanted& wanted, const Inputs& inputs) {
  ir::Expected<planner::Problem> problem =
      planner::makeProblem(inputs.graph, inputs.target, inputs.costs);
  if (!problem) return problem.takeError();
  ir::Expected<planner::PlanResult> result = planner::plan(*problem, Bytes(INT64_MAX / 4));
  if (!result) return result.takeError();
  const bool isEstimate = inputs.costs.source == ir::CostSource::kRoofline;
  return BenchedStep{.name = wanted.step.name,
                     .recipe = wanted.path.empty()
                                   ? wanted.step.model + " " + llvm::join(wanted.step.settings, " ")
                                   : wanted.path,
                     .costs = isEstimate ? "estimated " + planner::describeEstimate(inputs.target)
                                         : ir::costSourceName(inputs.costs.source) +
                                               (" on " + inputs.costs.device),
                     .nodes = inputs.graph.nodes().size(),
                     .unlimited = result->timetable.stepTime,
                     .peak = ir::computeUnplannedPeak(inputs.graph, inputs.target, problem->costs)};
}

Bytes resolve(const WantedBudget& budget, Bytes peak, int64_t alignBytes) {
  const double bytes = budget.percent > 0
                           ? static_cast<double>(peak.value()) * budget.percent / 100
                           : budget.gibibytes * static_cast<double>(int64_t{1} << 30);
  return Bytes(std::llround(bytes) / alignBytes * alignBytes);
}

ir::Expected<PlannerRow> planRow(const Inputs& inputs, const WantedBudget& wanted, Bytes peak) {
  PlannerRow row{.budget = resolve(wanted, peak, inputs.target.alignBytes),
                 .percent = wanted.percent,
                 .goal = wanted.goal,
                 .plan = std::nullopt};
  passes::PlanStepOptions options;
  options.budget = row.budget;
  const std::clock_t cpuBegin = std::clock();
  const auto begin = std::chrono::steady_clock::now();
  ir::Expected<passes::PlannedStep> planned =
      passes::planStep(inputs.graph, inputs.target, inputs.costs, options);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  row.cpuSeconds = static_cast<double>(std::clock() - cpuBegin) / CLOCKS_PER_SEC;
  row.wallSeconds = wall.count();
  if (!planned) {
    ir::PlanError error = ir::takePayload(planned.takeError());
    if (!error.infeasible()) return ir::makeError(std::move(error));
    row.smallest = error.infeasible()->smallestBudget;
    row.space = error.infeasible()->space;
    return row;
  }
  const ir::Prediction& claim = planned->schedule.predicted;
  row.plan = BenchedPlan{.stepTime = claim.stepTime,
                         .bound = claim.bound,
                         .moved = claim.bytesOut + claim.bytesIn,
                         .rowBlocks = planned->rowBlocks,
                         .order = passes::orderName(planned->order)};
  return row;
}

/// What all rows have in common: "machine", "commit" and so on.
std::vector<std::pair<std::string, std::string>> describeRun(const PlannerBenchFlags& flags) {
  const char* commit = std::getenv("STOWAGE_COMMIT");
  return {{"machine", fmt::format("{} cores, {}", std::thread::hardware_concurrency(),
                                  llvm::sys::getHostCPUName().str())},
          {"commit", commit == nullptr || *commit == '\0' ? "unknown" : commit},
          {"target", std::string(kExampleTarget) +
                         ", nondeterministic kernels; captured steps have their own"},
          {"costs", flags.costs == kRoofline
                        ? "estimated"
                        : "measured where '" + flags.costs + "' has them, else estimated"},
          {"seconds", "each row planned on its own; CPU seconds of all threads"}};
}

ir::Expected<bool> printStep(const PlannerBenchFlags& flags, const Wanted& wanted, Json& steps,
                             llvm::raw_ostream& os) {
  ir::Expected<Inputs> inputs = readInputs(flags, wanted);
  if (!inputs) return inputs.takeError();
  ir::Expected<BenchedStep> step = measureUnlimited(wanted, *inputs);
  if (!step) return step.takeError();
  if (!flags.json) os << formatHead(*step);
  os.flush();
  bool areAllMet = true;
  Json json = stepJson(*step);
  json["rows"] = Json::array();
  for (const WantedBudget& budget : wanted.step.budgets) {
    ir::Expected<PlannerRow> row = planRow(*inputs, budget, step->peak);
    if (!row) return row.takeError();
    areAllMet = areAllMet && isGoalMet(*row, step->unlimited).value_or(true);
    json["rows"].push_back(rowJson(*row, step->unlimited));
    if (!flags.json) os << formatRow(*row, step->unlimited);
    os.flush();
  }
  steps.push_back(std::move(json));
  return areAllMet;
}

}  // namespace

ir::Expected<bool> printPlans(const PlannerBenchFlags& flags, llvm::raw_ostream& os) {
  ir::Expected<std::vector<Wanted>> chosen = choose(flags);
  if (!chosen) return chosen.takeError();
  Json answer;
  if (!flags.json) os << "# Plans of training steps\n";
  for (const auto& [key, value] : describeRun(flags)) {
    answer[key] = value;
    if (!flags.json) os << "- " << key << ": " << value << '\n';
  }
  answer["steps"] = Json::array();
  bool areAllMet = true;
  for (const Wanted& wanted : *chosen) {
    ir::Expected<bool> isMet = printStep(flags, wanted, answer["steps"], os);
    if (!isMet) return isMet.takeError();
    areAllMet = areAllMet && *isMet;
  }
  if (flags.json) printJson(answer);
  return areAllMet;
}

}  // namespace stowage::tools
