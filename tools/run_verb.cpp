// SPDX-License-Identifier: Apache-2.0
//
// stowage run plan.json --steps 100 --data tokens.safetensors --weights model.safetensors --save
// out
//
// Trains by a plan that was made before: an example model is captured again from the recipe in the
// graph and must have the plan's fingerprint, an imported step is its graph; either runs inside the
// plan's arenas. The plan is proved
// again from the file's bytes and compared with this machine. Nothing is planned here: what does
// not fit is refused.
#include <fmt/format.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>

#include "ir/fingerprint.h"
#include "ir/verify.h"
#include "runtime/calibrate.h"
#include "runtime/torch_version.h"
#include "tools/exit_code.h"
#include "tools/imported_run.h"
#include "tools/load_files.h"
#include "tools/run_data.h"
#include "tools/run_output.h"
#include "tools/training_run.h"
#include "tools/verbs.h"

namespace stowage::tools {

namespace {

struct RunFlags : CommonFlags {
  std::string plan;
  std::string graph;
  std::string costs;
  std::vector<std::string> data;
  std::vector<std::string> weights;
  std::string save;
  std::string resume;
  int64_t steps = 20;
  int64_t saveEvery = 0;
  uint64_t seed = 0;
  int threads = 0;
  bool compare = false;
  // Of imported steps.
  std::string archive;
  std::optional<double> learningRate;
  bool randomWeights = false;
};

/// Set by SIGTERM and SIGINT: the step under way is finished, the state saved.
volatile std::sig_atomic_t stopAsked = 0;
void askToStop(int /*signal*/) { stopAsked = 1; }

/// V3: the plan's machine is this one. An op may get fewer threads than the machine has cores, not
/// more.
ir::Error checkMachine(const planner::PlanFile& plan, int threads) {
  ir::Target machine = plan.target;
  machine.device = ir::DeviceKind::kCpu;
  machine.computeCapability = 0;
  machine.reserved.clear();
  machine.libraries = {{"torch", runtime::torchVersion()}};
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  machine.intraOpThreads = threads > 0 ? threads : std::min(plan.target.intraOpThreads, cores);
  ir::Error error = planner::checkPlanTarget(plan, machine);
  if (!error) return ir::success();
  const ir::PlanError found = ir::takePayload(std::move(error));
  ir::PlanError problem(ir::ErrorCode::kEnvironment, "V3: " + found.text());
  for (const std::string& note : found.notes()) problem.note(note);
  return ir::makeError(std::move(problem));
}

ir::Error proveAgain(const std::string& path, const LoadedPlan& plan) {
  const std::vector<ir::Violation> violations = ir::verify({.graph = plan.graph,
                                                            .schedule = plan.file.schedule,
                                                            .target = plan.file.target,
                                                            .costs = nullptr,
                                                            .budget = plan.file.budget});
  if (violations.empty()) return ir::success();
  ir::PlanError error(ir::ErrorCode::kViolation, "the plan breaks the verifier's rules");
  error.at({.file = path});
  for (const ir::Violation& violation : violations) {
    error.note("V" + std::to_string(violation.rule) + ": " + violation.message);
  }
  return ir::makeError(std::move(error));
}

/// The step that the plan is for: an example model captured again, or an imported graph.
struct Source {
  Recipe recipe;
  std::unique_ptr<ModelStep> model;
  std::unique_ptr<ImportedRun> imported;
  ir::Graph graph;  // in the plan's order
  const std::vector<TrainingStep::Input>& inputs() const {
    return model ? model->training.inputs : imported->inputs();
  }
};

ir::Error openModel(const RunFlags& flags, const LoadedPlan& plan, Source& source) {
  const std::vector<std::pair<bool, const char*>> ofImports = {
      {flags.learningRate.has_value(), "--lr"},
      {!flags.archive.empty(), "--archive"},
      {flags.randomWeights, "--random-weights"}};
  for (const auto& [given, name] : ofImports) {
    if (!given) continue;
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         std::string(name) + " goes with imported steps; '" + source.recipe.model +
                             "' is an example model, whose settings 'capture --set' gives");
  }
  ir::Expected<std::unique_ptr<ModelStep>> step = captureModel(
      source.recipe, {.target = plan.file.target, .seed = flags.seed, .withoutMemory = false});
  if (!step) return step.takeError();
  source.model = std::move(*step);
  // An embedded graph is in the plan's order already, whichever that is.
  for (const passes::Order order : {passes::Order::kProgram, passes::Order::kHoisted}) {
    ir::Expected<ir::Graph> graph = passes::arrangeGraph(source.model->graph, order);
    if (!graph) return graph.takeError();
    source.graph = std::move(*graph);
    if (ir::fingerprint(source.graph) == plan.file.graph.fingerprint) return ir::success();
  }
  return ir::makeError(ir::ErrorCode::kPlanMismatch, "capturing '" + source.recipe.text() +
                                                         "' again gave another graph than the "
                                                         "plan's, " +
                                                         plan.file.graph.fingerprint +
                                                         ": capture and plan it again");
}

ir::Error openImported(const RunFlags& flags, const LoadedPlan& plan, Source& source) {
  const std::string& file = plan.graphPath.empty() ? flags.plan : plan.graphPath;
  ir::Expected<std::unique_ptr<ImportedRun>> run = ImportedRun::open(
      plan.step, {.weights = flags.weights,
                  .archive = flags.archive,
                  .folder = llvm::sys::path::parent_path(file).str(),
                  .randomWeights = flags.randomWeights || (!flags.resume.empty() && !flags.compare),
                  .seed = flags.seed,
                  .learningRate = flags.learningRate,
                  .hasData = !flags.data.empty()});
  if (!run) return run.takeError();
  source.imported = std::move(*run);
  source.graph = plan.graph;
  return ir::success();
}

ir::Expected<Source> openSource(const RunFlags& flags, const LoadedPlan& plan) {
  Source source;
  ir::Expected<Recipe> recipe = parseRecipe(plan.graph.provenance().recipe);
  if (!recipe) return recipe.takeError();
  source.recipe = std::move(*recipe);
  const std::vector<ModelInfo>& known = modelCatalogue();
  const bool isModel = !source.recipe.isArchive() &&
                       std::any_of(known.begin(), known.end(), [&](const ModelInfo& model) {
                         return model.name == source.recipe.model;
                       });
  if (!isModel && !source.recipe.isArchive()) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "the graph was captured from '" + plan.graph.provenance().recipe +
                             "', expected an example model or a .pt2 archive: steps of other code "
                             "run through the C++ interface");
  }
  ir::Error error = isModel ? openModel(flags, plan, source) : openImported(flags, plan, source);
  if (error) return error;
  return source;
}

struct GrownOp {
  Bytes need;
  ir::CommandId command;
};

/// Ops that need more than the plan gives them, the largest first, one per node.
std::vector<GrownOp> findGrownOps(const LoadedPlan& plan, const ir::NodeCosts& costs) {
  std::vector<GrownOp> grown;
  for (size_t i = 0; i < plan.file.schedule.commands.size(); ++i) {
    const ir::Command& command = plan.file.schedule.commands[i];
    if (command.kind != ir::CommandKind::kRun || command.clone != 0) continue;
    const Bytes need = costs.nodes[command.node.index()].temporary;
    if (need > command.temp.bytes) grown.push_back({need, ir::CommandId(i)});
  }
  std::stable_sort(grown.begin(), grown.end(),
                   [](const GrownOp& a, const GrownOp& b) { return a.need > b.need; });
  return grown;
}

ir::Error refuseGrownOps(const LoadedPlan& plan, llvm::ArrayRef<GrownOp> grown) {
  constexpr size_t kShown = 8;
  ir::PlanError error(ir::ErrorCode::kViolation,
                      "V17: " + std::to_string(grown.size()) +
                          " ops need more temporary memory on this machine than the plan has for "
                          "them; 'stowage profile' measures it, for a new plan with --costs");
  for (const GrownOp& op : grown.take_front(kShown)) {
    const ir::Command& command = plan.file.schedule.command(op.command);
    error.note(plan.graph.describeNode(command.node) + ": needs " + formatBytes(op.need) +
               ", has " + formatBytes(command.temp.bytes));
  }
  if (grown.size() > kShown) {
    error.note("and " + std::to_string(grown.size() - kShown) + " more");
  }
  return ir::makeError(std::move(error));
}

/// How each op allocates here. What needs more than the plan gives it is named.
ir::Expected<ir::NodeCosts> measureAllocations(const RunFlags& flags, const LoadedPlan& plan) {
  runtime::CalibrateOptions options;
  options.intraOpThreads = plan.file.target.intraOpThreads;
  options.alignBytes = plan.file.target.alignBytes;
  options.deterministic = plan.file.target.deterministic;
  options.runs = 0;
  if (!flags.costs.empty()) {
    ir::Expected<planner::CostFile> known = loadCosts(flags.costs);
    if (!known) return known.takeError();
    options.known = std::move(known->table);
  }
  ir::Expected<ir::CostTable> table = runtime::calibrate(plan.graph, options);
  if (!table) return table.takeError();
  ir::Expected<ir::NodeCosts> costs = ir::resolveCosts(plan.graph, *table);
  if (!costs) return costs.takeError();
  const std::vector<GrownOp> grown = findGrownOps(plan, *costs);
  if (!grown.empty()) return refuseGrownOps(plan, grown);
  return costs;
}

/// The whole training from its first step, by plain libtorch; an imported step op by op.
ir::Expected<Comparison> compareUnplanned(const RunFlags& flags, const LoadedPlan& plan,
                                          const Source& source, const BatchSource& batches,
                                          const RunRecord& run) {
  const auto steps = run.firstStep + static_cast<int64_t>(run.training.losses.size());
  ir::Expected<TrainingRecord> eager =
      source.model
          ? trainEagerly(source.recipe, plan.file.target, flags.seed, steps, batches, flags.weights)
          : trainByReplay({.step = source.imported->step(),
                           .schedule = plan.file.schedule,
                           .planned = plan.graph,
                           .target = plan.file.target,
                           .weights = flags.weights},
                          flags.seed, steps, batches);
  if (!eager) return eager.takeError();
  eager->losses.erase(eager->losses.begin(), eager->losses.begin() + run.firstStep);
  eager->reports.erase(eager->reports.begin(), eager->reports.begin() + run.firstStep);
  Comparison comparison;
  comparison.difference = firstDifference(*eager, run.training);
  comparison.eager = std::move(*eager);
  return comparison;
}

ir::Expected<RunRecord> train(const RunFlags& flags, const LoadedPlan& plan, Source& source,
                              const ir::NodeCosts& costs, const BatchSource& batches) {
  std::signal(SIGTERM, askToStop);
  std::signal(SIGINT, askToStop);
  Progress progress(!flags.quiet && !flags.json);
  PlannedTraining training = {.graph = source.graph,
                              .schedule = plan.file.schedule,
                              .target = plan.file.target,
                              .costs = &costs};
  training.options.weights = flags.weights;
  RunOptions options;
  options.seed = flags.seed;
  options.steps = flags.steps;
  options.batches = batches;
  options.resume = flags.resume;
  options.save = flags.save;
  options.saveEvery = flags.saveEvery;
  options.stop = [] { return stopAsked != 0; };
  options.report = [&progress](int64_t step, double loss) {
    progress.show(fmt::format("step {}  loss {:.4f}", step + 1, loss));
  };
  return source.model ? runByPlan(*source.model, training, options)
                      : runByPlan(source.imported->step(), training, options);
}

VerbResult runRun(const RunFlags& flags) {
  ir::Expected<LoadedPlan> plan = loadPlan(flags.plan, flags.graph);
  if (!plan) return plan.takeError();
  if (ir::Error error = proveAgain(flags.plan, *plan)) return error;
  if (ir::Error error = checkMachine(plan->file, flags.threads)) return error;
  ir::Expected<Source> source = openSource(flags, *plan);
  if (!source) return source.takeError();
  ir::Expected<std::unique_ptr<RunData>> data =
      openRunData(flags.data, source->inputs(), flags.seed);
  if (!data) return data.takeError();
  const BatchSource batches = [&](int64_t position) -> ir::Expected<Batch> {
    ir::Expected<Batch> batch = (*data)->at(position);
    if (!batch || source->model) return batch;
    return source->imported->withRates(std::move(*batch));
  };
  ir::Expected<ir::NodeCosts> costs = measureAllocations(flags, *plan);
  if (!costs) return costs.takeError();

  ir::Expected<RunRecord> run = train(flags, *plan, *source, *costs, batches);
  if (!run) return run.takeError();

  RunAnswer answer = {
      .plan = plan->file,
      .run = *run,
      .data = (*data)->describe(),
      .weights = source->model || !flags.resume.empty() ? "" : source->imported->origin(),
      .resume = flags.resume,
      .save = flags.save};
  std::optional<Comparison> comparison;
  if (flags.compare) {
    ir::Expected<Comparison> compared = compareUnplanned(flags, *plan, *source, batches, *run);
    if (!compared) return compared.takeError();
    comparison = std::move(*compared);
    answer.comparison = &*comparison;
  }
  flags.json ? printRunJson(answer, llvm::outs()) : printRunAnswer(answer, llvm::outs());
  return !comparison || comparison->difference.empty() ? kExitYes : kExitNo;
}

}  // namespace

Verb addRunVerb(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "train by a plan, inside its budget");
  command->add_option("plan", flags->plan, "plan file")->required();
  command->add_option("--steps", flags->steps, "training steps of this run")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_option("--data", flags->data,
                      "batches: a safetensors file with the step's inputs or one row of tokens, or "
                      "text files; default: random numbers");
  command->add_option("--weights", flags->weights,
                      "safetensors files with every parameter and buffer; default: an imported "
                      "step's archive, for an example model first values drawn from --seed");
  command->add_option("--archive", flags->archive,
                      "the .pt2 file that an imported step came from, for the weights in it; "
                      "default: the one beside the step's file");
  command
      ->add_flag("--random-weights", flags->randomWeights,
                 "an imported step without weights: draw them from --seed, for a trial")
      ->excludes("--weights");
  command->add_option("--lr", flags->learningRate,
                      "learning rate of an imported step that takes it as an input");
  command->add_option("--save", flags->save, "folder for a checkpoint after the last step");
  command->add_option("--save-every", flags->saveEvery, "save each time this many steps are done")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->needs("--save");
  command->add_option("--resume", flags->resume, "folder of the checkpoint to go on from");
  command->add_option("--seed", flags->seed, "of first values, dropout and random data")
      ->capture_default_str();
  command->add_flag("--compare-unplanned", flags->compare,
                    "train by plain libtorch as well and compare every bit");
  command->add_option("--graph", flags->graph,
                      "the captured step, where the plan does not say or embed it");
  command->add_option("--costs", flags->costs,
                      "costs measured by 'stowage profile'; default: how ops allocate is measured "
                      "before the first step");
  command
      ->add_option("--threads", flags->threads,
                   "threads inside one op on this machine; a plan for another number is refused")
      ->check(CLI::Range(1, 1024));
  addCommonFlags(*command, *flags, /*writesFiles=*/false);
  return {.command = command, .run = [flags] { return runRun(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
