// SPDX-License-Identifier: Apache-2.0
//
// stowage-bench: how long planning takes and how close plans come to their bound.
//   g10 --data DIR   the training steps of the G10 data set, offload alone and with recomputes
//   step FILE        a captured step at several budgets, with `--costs` as measured or an estimate
//   speed            steps in the shape of a Llama, from two to sixty thousand nodes
//   planner          plans of example models, and of captured steps, beside their goals
//   estimates        estimated step times beside measured ones
//
// Data sets are not part of the project; without them `g10` says so and succeeds.
#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/affix.h"
#include "ir/schedule/fingerprint.h"
#include "passes/plan_step.h"
#include "planner/plan.h"
#include "planner/targets/roofline.h"
#include "tools/bench/estimates.h"
#include "tools/bench/g10_step.h"
#include "tools/bench/llama_step.h"
#include "tools/bench/planner_bench.h"
#include "tools/bench/step_files.h"
#include "tools/cli/exit_code.h"

namespace stowage::tools {

namespace {

struct Measured {
  ir::Expected<planner::PlanResult> result;
  double seconds = 0;
};

Measured planTimed(const planner::Problem& problem, Bytes budget) {
  const auto begin = std::chrono::steady_clock::now();
  ir::Expected<planner::PlanResult> result = planner::plan(problem, budget);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return {std::move(result), took.count()};
}

void printRow(const std::string& name, Measured measured) {
  if (!measured.result) {
    llvm::outs() << fmt::format("{:<30} {:7.2f} s  {}\n", name, measured.seconds,
                                ir::describe(measured.result.takeError()));
    llvm::outs().flush();
    return;
  }
  const planner::PlanResult& result = *measured.result;
  const auto seconds = [](Nanoseconds time) { return static_cast<double>(time.value()) / 1e9; };
  const double step = seconds(result.timetable.stepTime);
  const auto gibibytes = [](Bytes bytes) {
    return static_cast<double>(bytes.value()) / static_cast<double>(int64_t{1} << 30);
  };
  llvm::outs() << fmt::format(
      "{:<30} {:7.2f} s  step {:9.4f} s  compute {:9.4f} s  bound {:9.4f} s  {:.4f} x bound  needs "
      "{:.2f} GiB, moves {:.2f} GiB\n",
      name, measured.seconds, step, seconds(result.timetable.computeTime), seconds(result.bound),
      step / seconds(result.bound), gibibytes(result.timetable.devicePeak),
      gibibytes(result.timetable.bytesOut + result.timetable.bytesIn));
  llvm::outs().flush();
}

std::vector<std::string> listG10Steps(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (llvm::sys::fs::directory_iterator at(folder, failed), end; at != end && !failed;
       at.increment(failed)) {
    const llvm::StringRef path = at->path();
    if (ir::endsWith(path, ".json.gz") || ir::endsWith(path, ".json")) paths.push_back(path.str());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

int runG10(const std::string& data) {
  const std::vector<std::string> paths =
      data.empty() ? std::vector<std::string>() : listG10Steps(data);
  if (paths.empty()) {
    llvm::outs() << "no steps below '" << data
                 << "': --data names the folder of the G10 data set\n";
    return kExitYes;
  }
  for (const std::string& path : paths) {
    ir::Expected<G10Step> step = readG10Step(path);
    if (!step) {
      llvm::errs() << "error: " << ir::describe(step.takeError()) << '\n';
      return kExitBadInput;
    }
    for (const bool recompute : {false, true}) {
      const std::string name = step->name + (recompute ? " joint" : " offload");
      printRow(name, planTimed(makeG10Problem(*step, recompute), step->budget));
    }
  }
  return kExitYes;
}

ir::Expected<ir::CostTable> loadStepCosts(const std::string& path, const ir::Graph& graph,
                                          const ir::Target& target) {
  if (path.empty()) return planner::rooflineCosts(graph, target);
  return readStepCosts(path);
}

struct StepFlags {
  std::string path;
  std::string costs;
  std::string profile = "h200";
};

// Each order at 90, 75, 50 and 30 per cent of what the step needs when nothing is done.
ir::Error planStepFile(const StepFlags& flags) {
  ir::Expected<ir::Graph> graph = readStep(flags.path);
  if (!graph) return graph.takeError();
  ir::Expected<ir::Target> target = planner::findTargetProfile(flags.profile);
  if (!target) return target.takeError();
  ir::Expected<ir::CostTable> costs = loadStepCosts(flags.costs, *graph, *target);
  if (!costs) return costs.takeError();
  std::string before;
  for (const passes::Order order : passes::kAllOrders) {
    ir::Expected<ir::Graph> arranged = passes::arrangeGraph(*graph, order);
    if (!arranged) return arranged.takeError();
    std::string fingerprint = ir::fingerprint(*arranged);
    if (fingerprint == before) continue;
    before = std::move(fingerprint);
    ir::Expected<planner::Problem> problem = planner::makeProblem(*arranged, *target, *costs);
    if (!problem) return problem.takeError();
    const Bytes all = llvm::cantFail(planner::plan(*problem, Bytes(INT64_MAX / 4))).keepAllPeak;
    for (const int64_t percent : {90, 75, 50, 30}) {
      const Bytes budget(all.value() * percent / 100 / target->alignBytes * target->alignBytes);
      const std::string name = fmt::format("{} {} %", passes::orderName(order), percent);
      printRow(name, planTimed(*problem, budget));
    }
  }
  return ir::success();
}

int runStep(const StepFlags& flags) {
  ir::Error error = planStepFile(flags);
  if (!error) return kExitYes;
  llvm::errs() << "error: " << ir::describe(std::move(error)) << '\n';
  return kExitBadInput;
}

struct SpeedCase {
  const char* name;
  LlamaShape shape;
  int64_t budgetGiB;
};

int runSpeed(const std::vector<std::string>& names) {
  const SpeedCase cases[] = {
      {"2k", {.layers = 20, .hidden = 2048, .wide = 8192, .tokens = 8192}, 24},
      {"10k", {.layers = 100, .hidden = 2048, .wide = 8192, .tokens = 8192}, 40},
      {"70b", {.layers = 80, .hidden = 8192, .wide = 28672, .heads = 64, .tokens = 8192}, 80},
      {"60k", {.layers = 600, .hidden = 1024, .wide = 4096, .heads = 16, .tokens = 4096}, 40}};
  const ir::Expected<ir::Target> target = planner::findTargetProfile("h200");
  for (const SpeedCase& one : cases) {
    const bool isAsked =
        names.empty() || std::find(names.begin(), names.end(), one.name) != names.end();
    if (!isAsked) continue;
    const ir::Graph graph = makeLlamaStep(one.shape);
    const planner::Problem problem = llvm::cantFail(
        planner::makeProblem(graph, *target, planner::rooflineCosts(graph, *target)));
    printRow(fmt::format("{} ({} nodes, {} GiB)", one.name, graph.nodes().size(), one.budgetGiB),
             planTimed(problem, Bytes(one.budgetGiB << 30)));
  }
  return kExitYes;
}

int runEstimates(const EstimateFolders& folders) {
  if (folders.steps.empty() || folders.costs.empty()) {
    llvm::outs() << "no measured steps: --steps names a folder of captured steps, --costs one of "
                    "their measured costs\n";
    return kExitYes;
  }
  ir::Expected<bool> areAllWithin = printEstimates(folders, llvm::outs());
  if (areAllWithin) return *areAllWithin ? kExitYes : kExitNo;
  llvm::errs() << "error: " << ir::describe(areAllWithin.takeError()) << '\n';
  return kExitBadInput;
}

/// The program `stowage` beside this one; "" where it was not built.
std::string findStowage(const char* self) {
  static int here = 0;
  llvm::SmallString<256> path(llvm::sys::fs::getMainExecutable(self, &here));
  llvm::sys::path::remove_filename(path);
  llvm::sys::path::append(path, "stowage");
  return llvm::sys::fs::can_execute(path) ? path.str().str() : "";
}

int runPlanner(const PlannerBenchFlags& flags) {
  if (flags.program.empty()) {
    llvm::errs() << "no program 'stowage' beside this one, which captures the example models: only "
                    "--steps are planned\n";
  }
  ir::Expected<bool> areAllMet = printPlans(flags, llvm::outs());
  if (areAllMet) return *areAllMet ? kExitYes : kExitNo;
  ir::PlanError error = ir::takePayload(areAllMet.takeError());
  const int code = exitCodeFor(error.code());
  llvm::errs() << "error: " << ir::describe(ir::makeError(std::move(error))) << '\n';
  return code;
}

CLI::App* addPlanner(CLI::App& app, PlannerBenchFlags& flags) {
  CLI::App* planner = app.add_subcommand("planner", "plan example models and compare with goals");
  planner
      ->add_option("--steps", flags.steps,
                   "folder of captured steps (NAME.stow), planned at 80, 60, 35 and 25 % of their "
                   "peak")
      ->check(CLI::ExistingDirectory);
  planner
      ->add_option("--only", flags.only,
                   "NAME or NAME:BUDGET (llama1b:20, llama1b_32k:35%); may be repeated")
      ->delimiter(',');
  planner
      ->add_option("--costs", flags.costs,
                   "'roofline', or a folder of costs by 'stowage profile' (NAME.json)")
      ->check(CLI::IsMember({"roofline"}) | CLI::ExistingDirectory)
      ->capture_default_str();
  planner->add_flag("--json", flags.json, "the same as JSON");
  return planner;
}

int runBench(int argc, char** argv) {
  CLI::App app("Measures the planner.", "stowage-bench");
  app.require_subcommand(1);
  std::string data;
  CLI::App* g10 = app.add_subcommand("g10", "plan the steps of the G10 data set");
  g10->add_option("--data", data, "folder with the steps (*.json.gz)");
  StepFlags stepFlags;
  CLI::App* step = app.add_subcommand("step", "plan a captured step at several budgets");
  step->add_option("step", stepFlags.path, "captured and normalised step (.stow)")->required();
  step->add_option("--costs", stepFlags.costs, "costs measured by 'stowage profile'");
  step->add_option("--target", stepFlags.profile, "target profile");
  std::vector<std::string> names;
  CLI::App* speed = app.add_subcommand("speed", "plan large made-up steps");
  speed->add_option("case", names, "2k, 10k, 70b, 60k; default: all");
  EstimateFolders folders;
  CLI::App* estimates =
      app.add_subcommand("estimates", "estimated step times beside measured ones");
  estimates->add_option("--steps", folders.steps, "folder of captured steps (NAME.stow)");
  estimates->add_option("--costs", folders.costs,
                        "folder of costs by 'stowage profile --in-steps' (NAME.json), one per GPU; "
                        "may be repeated");
  PlannerBenchFlags plannerFlags;
  CLI::App* planner = addPlanner(app, plannerFlags);
  CLI11_PARSE(app, argc, argv);
  if (planner->parsed()) {
    plannerFlags.program = findStowage(argv[0]);
    return runPlanner(plannerFlags);
  }
  if (estimates->parsed()) return runEstimates(folders);
  if (step->parsed()) return runStep(stepFlags);
  return g10->parsed() ? runG10(data) : runSpeed(names);
}

}  // namespace
}  // namespace stowage::tools

int main(int argc, char** argv) { return stowage::tools::runBench(argc, argv); }
