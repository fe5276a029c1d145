// SPDX-License-Identifier: Apache-2.0
//
// stowage demo: trains a small language model on the distribution's licence texts, once by plain
// libtorch and once by a plan in half of the memory, and shows the product in one screen.
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "ir/liveness.h"
#include "ir/printer.h"
#include "planner/cost_json.h"
#include "planner/roofline.h"
#include "runtime/calibrate.h"
#include "runtime/torch_version.h"
#include "tools/budget_flag.h"
#include "tools/exit_code.h"
#include "tools/graph_summary.h"
#include "tools/load_files.h"
#include "tools/plan_output.h"
#include "tools/plan_summary.h"
#include "tools/text_batches.h"
#include "tools/training_run.h"
#include "tools/verbs.h"
#include "tools/whole_file.h"

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
  std::string planFile() const { return folder + "/plan.json"; }
};

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Batches of the text, each made once and used by both trainings.
ir::Expected<std::vector<Batch>> makeBatches(const DemoFlags& flags, const TrainingStep& training) {
  const std::vector<std::string> files = flags.texts.empty() ? licenceTexts() : flags.texts;
  const std::vector<int64_t>& sizes = training.inputs.front().sizes;
  ir::Expected<TextBatches> source = TextBatches::open(files, sizes[0], sizes[1], kSeed);
  if (!source) return source.takeError();
  std::vector<Batch> batches;
  for (int64_t i = 0; i < flags.steps; ++i) {
    const TextBatch text = source->next();
    batches.push_back({at::tensor(text.tokens).view(sizes), at::tensor(text.targets).view(sizes)});
  }
  return batches;
}

ir::Expected<PlanningInputs> measureAndPrepare(const DemoFlags& flags, const ModelStep& step,
                                               const ir::Target& target) {
  PlanningInputs inputs;
  inputs.graph = step.graph;
  inputs.target = target;
  inputs.costsTorchVersion = runtime::torchVersion();
  ir::Expected<ir::CostTable> costs =
      runtime::calibrate(step.graph, {.intraOpThreads = target.intraOpThreads,
                                      .alignBytes = target.alignBytes,
                                      .deterministic = target.deterministic,
                                      .known = {}});
  if (!costs) return costs.takeError();
  inputs.costs = std::move(*costs);
  inputs.costs.links = runtime::measureMemoryLinks();
  if (ir::Error error = measureKeepAll(inputs)) return error;
  ir::Expected<SizeFlag> size = parseSizeFlag(flags.budget);
  if (!size) return size.takeError();
  const Bytes budget = size->resolve({.device = target.memory, .peak = inputs.keepAll});
  inputs.options.budget = Bytes(budget.value() / target.alignBytes * target.alignBytes);
  return inputs;
}

void printRun(const TrainingRecord& eager, const TrainingRecord& planned,
              const PlanningInputs& inputs, llvm::raw_ostream& os) {
  os << fmt::format(
      "ran        {} steps inside {}: {:.2f} s a step (measured), plain libtorch {:.2f} s ({:+.1f} "
      "%)\n",
      planned.losses.size(), formatBytes(inputs.options.budget), planned.secondsPerStep,
      eager.secondsPerStep, (planned.secondsPerStep / eager.secondsPerStep - 1) * 100);
  const std::string difference = firstDifference(eager, planned);
  os << fmt::format("           loss {:.4f} -> {:.4f}, ", planned.losses.front(),
                    planned.losses.back());
  os << (difference.empty()
             ? "losses, parameters and optimizer state equal plain libtorch bit for bit\n"
             : "DIFFERENT from plain libtorch: " + difference + "\n");
}

/// What could not be written at the end is refused before anything is trained.
ir::Error checkFiles(const DemoFlags& flags) {
  if (ir::Error error = checkOutputFolder(flags.folder)) return error;
  if (!llvm::sys::fs::exists(flags.folder)) return ir::success();
  for (const std::string& file : {flags.stepFile(), flags.planFile()}) {
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
        ir::printGraph(inputs.graph, os);
      })) {
    return error;
  }
  return writeWholeFile(flags.planFile(), flags.replace,
                        [&](llvm::raw_ostream& os) { os << planText; });
}

VerbResult runDemo(const DemoFlags& flags) {
  if (ir::Error error = checkFiles(flags)) return error;
  llvm::raw_ostream& os = llvm::outs();
  const Recipe recipe = {.model = "gpt2",
                         .settings = flags.settings.empty()
                                         ? std::vector<std::string>{"preset=demo"}
                                         : flags.settings};
  ir::Expected<ir::Target> profile = planner::findTargetProfile("cpu");
  if (!profile) return profile.takeError();
  const auto begin = std::chrono::steady_clock::now();
  ir::Expected<std::unique_ptr<ModelStep>> step =
      captureModel(recipe, {.target = *profile, .seed = kSeed, .withoutMemory = false});
  if (!step) return step.takeError();
  os << "captured   " << describeGraph((*step)->graph, summariseGraph((*step)->graph))
     << fmt::format("  {:.2f} s\n", secondsSince(begin));
  os.flush();
  ir::Expected<ir::Target> target = chooseTarget((*step)->graph, "cpu", flags.threads);
  if (!target) return target.takeError();
  ir::Expected<std::vector<Batch>> batches = makeBatches(flags, (*step)->training);
  if (!batches) return batches.takeError();
  const BatchSource source = [&](int64_t i) -> ir::Expected<Batch> {
    return (*batches)[static_cast<size_t>(i)];
  };

  ir::Expected<PlanningInputs> inputs = measureAndPrepare(flags, **step, *target);
  if (!inputs) return inputs.takeError();
  ir::Expected<TrainingRecord> eager = trainEagerly(recipe, *target, kSeed, flags.steps, source);
  if (!eager) return eager.takeError();
  os << "unplanned  peak " << formatBytes(inputs->keepAll)
     << fmt::format(", {:.2f} s a step (plain libtorch, measured)\n", eager->secondsPerStep);
  os.flush();
  ir::Expected<passes::PlannedStep> planned =
      passes::planStep(inputs->graph, inputs->target, inputs->costs, inputs->options);
  if (!planned) return planned.takeError();
  ir::Expected<std::string> planText = makePlanText({.inputs = *inputs,
                                                     .planned = *planned,
                                                     .graphPath = flags.stepFile(),
                                                     .planPath = flags.planFile(),
                                                     .embed = false,
                                                     .flags = flags});
  if (!planText) return planText.takeError();
  printPlanSummary({.graph = planned->graph,
                    .schedule = planned->schedule,
                    .budget = inputs->options.budget,
                    .keepAll = inputs->keepAll,
                    .stalls = planned->result.timetable.stalls,
                    .costs = inputs->costs.source},
                   os);
  os << "verified   " << planned->schedule.commands.size() << " commands, 0 violations\n";
  os.flush();
  ir::Expected<ir::NodeCosts> costs = ir::resolveCosts(planned->graph, inputs->costs);
  if (!costs) return costs.takeError();
  ir::Expected<TrainingRecord> record = trainByPlan(**step,
                                                    {.graph = planned->graph,
                                                     .schedule = planned->schedule,
                                                     .target = inputs->target,
                                                     .costs = &*costs},
                                                    kSeed, flags.steps, source);
  if (!record) return record.takeError();
  printRun(*eager, *record, *inputs, os);
  if (ir::Error error = writeFiles(flags, *inputs, *planText)) return error;
  os << "wrote      " << flags.stepFile() << "  " << flags.planFile() << '\n';
  return firstDifference(*eager, *record).empty() ? kExitYes : kExitNo;
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
  command->add_option("--out", flags->folder, "folder for step.stow and plan.json")
      ->capture_default_str();
  command
      ->add_option("--threads", flags->threads,
                   "threads inside one op; default: the machine's cores")
      ->check(CLI::Range(1, 1024));
  addCommonFlags(*command, *flags, /*writesFiles=*/true);
  return {.command = command, .run = [flags] { return runDemo(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
