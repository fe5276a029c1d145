// SPDX-License-Identifier: Apache-2.0
//
// stowage demo: trains a small language model on the distribution's licence texts, once by plain
// libtorch and once by a plan in half of the memory, and shows the product in one screen.
#include <fmt/format.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "ir/graph/liveness.h"
#include "passes/planned_file.h"
#include "planner/files/cost_json.h"
#include "planner/report/plan_summary.h"
#include "planner/targets/roofline.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/torch/torch_version.h"
#include "tools/cli/budget_flag.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/printable_stream.h"
#include "tools/cli/progress.h"
#include "tools/files/load_files.h"
#include "tools/files/step_file.h"
#include "tools/files/whole_file.h"
#include "tools/machine/machine_load.h"
#include "tools/planning/graph_summary.h"
#include "tools/planning/plan_output.h"
#include "tools/run/in_step_times.h"
#include "tools/run/run_checks.h"
#include "tools/run/run_data.h"
#include "tools/run/text_batches.h"
#include "tools/training/model_training.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

constexpr uint64_t kSeed = 2026;

struct DemoFlags : CommonFlags {
  std::string budget = "50%peak";
  std::string folder = "demo";
  std::vector<std::string> settings;
  std::vector<std::string> texts;
  int64_t steps = 20;
  int threads = 0;
  std::string stepFile() const { return folder + "/step.stow"; }
  std::string costsFile() const { return folder + "/costs.json"; }
  std::string planFile() const { return folder + "/plan.json"; }
};

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// What `work` returns, with the seconds it takes on the terminal.
template <typename Work>
auto waitFor(const DemoFlags& flags, const char* what, Work work) {
  const Waiting waiting(!flags.quiet, what);
  return work();
}

/// Batches of the text, each made once and used by both trainings.
ir::Expected<std::vector<runtime::Batch>> makeBatches(const DemoFlags& flags,
                                                      const TrainingStep& training) {
  const std::vector<std::string> files = flags.texts.empty() ? licenceTexts() : flags.texts;
  if (files.empty()) {
    return ir::makeError(ir::ErrorCode::kEnvironment,
                         "this machine has no licence texts to train on; --text names files");
  }
  ir::Expected<std::unique_ptr<RunData>> data = openRunData(files, training.inputs, kSeed);
  if (!data) return data.takeError();
  std::vector<runtime::Batch> batches;
  for (int64_t i = 0; i < flags.steps; ++i) {
    ir::Expected<runtime::Batch> batch = (*data)->at(i);
    if (!batch) return batch.takeError();
    batches.push_back(std::move(*batch));
  }
  return batches;
}

ir::Expected<PlanningInputs> measureAndPrepare(const DemoFlags& flags, const ModelStep& step,
                                               const ir::Target& target, const Size& size) {
  Progress progress(!flags.quiet);
  PlanningInputs inputs;
  inputs.graph = step.graph;
  inputs.target = target;
  inputs.costsTorchVersion = runtime::torchVersion();
  const auto measure = [&](const ir::Graph& graph) {
    return runtime::calibrate(graph, {.intraOpThreads = target.intraOpThreads,
                                      .alignBytes = target.alignBytes,
                                      .deterministic = target.deterministic,
                                      .known = inputs.costs,
                                      .report = [&](size_t done, size_t all) {
                                        progress.show("measuring ops", done, all);
                                      }});
  };
  ir::Expected<ir::CostTable> costs = measure(step.graph);
  if (!costs) return costs.takeError();
  inputs.costs = std::move(*costs);
  if (ir::Error error = passes::addRowBlockCosts(step.graph, inputs.costs, measure)) return error;
  ir::Expected<ir::LinkModel> links = runtime::measureLinks(target);
  if (!links) return links.takeError();
  inputs.costs.links = *links;
  // Here the cores that compute also copy, and take turns with the rest of the machine.
  ir::Expected<InStepTimes> times = measureInSteps({.stepFile = flags.stepFile(),
                                                    .graph = step.graph,
                                                    .target = target,
                                                    .alone = inputs.costs,
                                                    .budget = flags.budget,
                                                    .host = "",
                                                    .flags = flags});
  if (!times) return times.takeError();
  inputs.costs = std::move(times->costs);
  if (ir::Error error = measureKeepAll(inputs)) return error;
  ir::Expected<Bytes> budget = resolveBudget(size, inputs);
  if (!budget) return budget.takeError();
  inputs.options.budget = *budget;
  return inputs;
}

void printRun(const runtime::TrainingRecord& eager, const runtime::TrainingRecord& planned,
              const PlanningInputs& inputs, llvm::raw_ostream& os) {
  os << fmt::format(
      "ran        {} steps inside {}: {:.2f} s a step (measured), plain libtorch {:.2f} s ({:+.1f} "
      "%)\n",
      planned.losses.size(), formatBytes(inputs.options.budget), planned.secondsPerStep,
      eager.secondsPerStep, (planned.secondsPerStep / eager.secondsPerStep - 1) * 100);
  const std::string difference = runtime::firstDifference(eager, planned);
  os << fmt::format("           loss {:.4f} -> {:.4f}, ", planned.losses.front(),
                    planned.losses.back());
  os << (difference.empty()
             ? "losses, parameters and optimizer state equal plain libtorch bit for bit\n"
             : "DIFFERENT from plain libtorch: " + difference + "\n");
}

/// With the names that `run --json` has.
nlohmann::ordered_json runJson(const runtime::TrainingRecord& eager,
                               const runtime::TrainingRecord& planned,
                               const std::string& difference) {
  return {{"steps", planned.losses.size()},
          {"losses", planned.losses},
          {"step_ns", planned.meanStep().value()},
          {"unplanned",
           {{"identical", difference.empty()},
            {"difference", difference},
            {"step_ns", eager.meanStep().value()}}}};
}

/// Both trainings hold the whole model: its size is known from a capture that does not.
ir::Error checkMemory(const Recipe& recipe, const ir::Target& target) {
  ir::Expected<std::unique_ptr<ModelStep>> step =
      captureModel(recipe, {.target = target, .seed = kSeed});
  return step ? checkUnplannedMemory((*step)->graph, target) : step.takeError();
}

/// What could not be written at the end is refused before anything is trained.
ir::Error checkFiles(const DemoFlags& flags) {
  if (ir::Error error = checkOutputFolder(flags.folder)) return error;
  if (!llvm::sys::fs::exists(flags.folder)) return ir::success();
  for (const std::string& file : {flags.stepFile(), flags.costsFile(), flags.planFile()}) {
    if (ir::Error error = checkIsNoInput(file, flags.texts)) return error;
    if (ir::Error error = checkWritable(file, flags.replace)) return error;
  }
  return ir::success();
}

ir::Error writeFiles(const DemoFlags& flags, const PlanningInputs& inputs,
                     const std::string& planText) {
  if (std::error_code code = llvm::sys::fs::create_directories(flags.folder)) {
    return ir::makeError(ir::ErrorCode::kIo,
                         flags.folder + ": cannot make the folder: " + code.message());
  }
  if (ir::Error error = writeWholeFile(flags.stepFile(), flags.replace, [&](llvm::raw_ostream& os) {
        writeStepFile(inputs.graph, os);
      })) {
    return error;
  }
  const planner::CostFile costs = {.stowageVersion = STOWAGE_VERSION,
                                   .torchVersion = inputs.costsTorchVersion,
                                   .table = inputs.costs};
  std::string costsText;
  llvm::raw_string_ostream costsStream(costsText);
  if (ir::Error error = planner::writeCosts(costs, costsStream)) return error;
  costsStream.flush();
  if (ir::Error error = writeWholeFile(flags.costsFile(), flags.replace,
                                       [&](llvm::raw_ostream& os) { os << costsText; })) {
    return error;
  }
  return writeWholeFile(flags.planFile(), flags.replace,
                        [&](llvm::raw_ostream& os) { os << planText; });
}

ir::Expected<runtime::RunRecord> trainByPlan(const DemoFlags& flags, ModelStep& step,
                                             const passes::PlannedStep& planned,
                                             const PlanningInputs& inputs,
                                             const runtime::BatchSource& source) {
  ir::Expected<ir::NodeCosts> costs =
      ir::resolveCosts(planned.graph, passes::costsOf(planned, inputs.costs));
  if (!costs) return costs.takeError();
  runtime::TrainingOptions options;
  options.seed = kSeed;
  options.steps = flags.steps;
  options.batches = source;
  options.keepState = true;
  return waitFor(flags, "training by the plan", [&] {
    return runByPlan(step,
                     {.graph = planned.graph,
                      .schedule = planned.schedule,
                      .target = inputs.target,
                      .costs = &*costs},
                     options);
  });
}

VerbResult runDemo(const DemoFlags& flags) {
  if (ir::Error error = checkFiles(flags)) return error;
  ir::Expected<Size> size = parseSizeFlag(flags.budget);
  if (!size) return size.takeError();
  llvm::raw_ostream& os = flags.json ? llvm::nulls() : answers();
  const Recipe recipe = {.model = "gpt2",
                         .settings = flags.settings.empty()
                                         ? std::vector<std::string>{"preset=demo"}
                                         : flags.settings};
  ir::Expected<ir::Target> profile = planner::findTargetProfile("cpu", runtime::torchVersion());
  if (!profile) return profile.takeError();
  if (ir::Error error = checkMemory(recipe, *profile)) return error;
  const auto begin = std::chrono::steady_clock::now();
  ir::Expected<std::unique_ptr<ModelStep>> step =
      captureModel(recipe, {.target = *profile, .seed = kSeed, .withoutMemory = false});
  if (!step) return step.takeError();
  os << "captured   " << describeGraph((*step)->graph, summariseGraph((*step)->graph))
     << fmt::format("  {:.2f} s\n", secondsSince(begin));
  os.flush();
  ir::Expected<ir::Target> target = chooseTarget((*step)->graph, "cpu", flags.threads);
  if (!target) return target.takeError();
  ir::Expected<std::vector<runtime::Batch>> batches = makeBatches(flags, (*step)->training);
  if (!batches) return batches.takeError();
  const runtime::BatchSource source = [&](int64_t i) -> ir::Expected<runtime::Batch> {
    return (*batches)[static_cast<size_t>(i)];
  };

  ir::Expected<PlanningInputs> inputs = measureAndPrepare(flags, **step, *target, *size);
  if (!inputs) return inputs.takeError();
  inputs->costsPath = flags.costsFile();
  ir::Expected<runtime::TrainingRecord> eager = waitFor(flags, "training by plain libtorch", [&] {
    return trainEagerly(recipe, *target, kSeed, flags.steps, source);
  });
  if (!eager) return eager.takeError();
  os << "unplanned  peak " << formatBytes(inputs->keepAll)
     << fmt::format(", {:.2f} s a step (plain libtorch, measured)\n", eager->secondsPerStep);
  os.flush();
  ir::Expected<passes::PlannedStep> planned = waitFor(flags, "planning", [&] {
    return passes::planStep(inputs->graph, inputs->target, inputs->costs, inputs->options);
  });
  if (!planned) return planned.takeError();
  ir::Expected<std::string> planText = makePlanText({.inputs = *inputs,
                                                     .planned = *planned,
                                                     .graphPath = flags.stepFile(),
                                                     .planPath = flags.planFile(),
                                                     .embed = false,
                                                     .flags = flags});
  if (!planText) return planText.takeError();
  const planner::PlanSummary summary = {.graph = planned->graph,
                                        .schedule = planned->schedule,
                                        .budget = inputs->options.budget,
                                        .keepAll = inputs->keepAll,
                                        .stalls = planned->result.timetable.stalls,
                                        .costs = summaryCosts(*inputs),
                                        .planNeeded = planned->result.planNeeded};
  planner::printPlanSummary(summary, os);
  os << "verified   " << planned->schedule.commands.size() << " commands, 0 violations\n";
  os.flush();
  ir::Expected<runtime::RunRecord> run = trainByPlan(flags, **step, *planned, *inputs, source);
  if (!run) return run.takeError();
  const runtime::TrainingRecord& record = run->training;
  printRun(*eager, record, *inputs, os);
  remark(describeSlowReference({.predicted = planned->schedule.predicted.stepTime,
                                .measured = eager->meanStep(),
                                .commands = planned->schedule.commands.size()}),
         flags);
  if (ir::Error error = writeFiles(flags, *inputs, *planText)) return error;
  os << "wrote      " << flags.stepFile() << "  " << flags.costsFile() << "  " << flags.planFile()
     << '\n';
  const std::string difference = runtime::firstDifference(*eager, record);
  if (flags.json) {
    const nlohmann::ordered_json json = {
        {"captured", graphSummaryJson((*step)->graph, summariseGraph((*step)->graph))},
        {"plan", planner::planSummaryJson(summary)},
        {"run", runJson(*eager, record, difference)},
        {"wrote", {flags.stepFile(), flags.costsFile(), flags.planFile()}}};
    printJson(json);
  }
  return difference.empty() ? kExitYes : kExitNo;
}

}  // namespace

Verb addDemoVerb(CLI::App& app) {
  auto flags = std::make_shared<DemoFlags>();
  CLI::App* command =
      app.add_subcommand("demo", "train a small language model in half of the memory, same bits");
  command->add_option("--budget", flags->budget, "device bytes for the planned training")
      ->capture_default_str();
  command->add_option("--steps", flags->steps, "training steps")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str();
  command->add_option("--set", flags->settings,
                      "a setting of the gpt2 model; default: preset=demo");
  command->add_option("--text", flags->texts,
                      "text files to train on; default: the distribution's licence texts");
  command->add_option("--out", flags->folder, "folder for step.stow, costs.json and plan.json")
      ->capture_default_str();
  command
      ->add_option("--threads", flags->threads,
                   "threads inside one op; default: the machine's cores")
      ->check(CLI::Range(1, 1024));
  addCommonFlags(*command, *flags, /*writesFiles=*/true);
  return {.command = command, .run = [flags] { return runDemo(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
