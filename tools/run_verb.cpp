// SPDX-License-Identifier: Apache-2.0
//
// stowage run plan.json --steps 100 --data tokens.safetensors --weights model.safetensors --save
// out
//
// Trains by a plan that was made before: the same step is captured again from the recipe in the
// graph, must have the plan's fingerprint, and runs inside the plan's arenas. The plan is proved
// again from the file's bytes and compared with this machine. Nothing is planned here: what does
// not fit is refused.
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "ir/fingerprint.h"
#include "ir/verify.h"
#include "runtime/calibrate.h"
#include "runtime/torch_version.h"
#include "tools/exit_code.h"
#include "tools/load_files.h"
#include "tools/run_data.h"
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

/// The step that the plan is for, captured again, and its graph in the plan's order.
struct Recaptured {
  std::unique_ptr<ModelStep> step;
  Recipe recipe;
  ir::Graph graph;
};

ir::Expected<Recaptured> captureAgain(const LoadedPlan& plan, uint64_t seed) {
  Recaptured again;
  ir::Expected<Recipe> recipe = parseRecipe(plan.graph.provenance().recipe);
  if (!recipe) return recipe.takeError();
  again.recipe = std::move(*recipe);
  const std::vector<ModelInfo>& known = modelCatalogue();
  if (std::none_of(known.begin(), known.end(),
                   [&](const ModelInfo& model) { return model.name == again.recipe.model; })) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "the graph was captured from '" + plan.graph.provenance().recipe +
                             "', expected one of the example models: 'run' makes their steps "
                             "again, others run through the C++ interface");
  }
  ir::Expected<std::unique_ptr<ModelStep>> step = captureModel(
      again.recipe, {.target = plan.file.target, .seed = seed, .withoutMemory = false});
  if (!step) return step.takeError();
  again.step = std::move(*step);
  for (const passes::Order order : {passes::Order::kProgram, passes::Order::kHoisted}) {
    ir::Expected<ir::Graph> graph = passes::arrangeGraph(again.step->graph, order);
    if (!graph) return graph.takeError();
    if (ir::fingerprint(*graph) != plan.file.graph.fingerprint) continue;
    again.graph = std::move(*graph);
    return again;
  }
  return ir::makeError(ir::ErrorCode::kPlanMismatch, "capturing '" + again.recipe.text() +
                                                         "' again gave another graph than the "
                                                         "plan's, " +
                                                         plan.file.graph.fingerprint +
                                                         ": capture and plan it again");
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

struct Comparison {
  TrainingRecord eager;
  std::string difference;
};

/// The whole training from its first step, by plain libtorch.
ir::Expected<Comparison> compareUnplanned(const RunFlags& flags, const LoadedPlan& plan,
                                          const Recipe& recipe, const BatchSource& batches,
                                          const RunRecord& run) {
  const auto steps = static_cast<int64_t>(run.training.losses.size());
  ir::Expected<TrainingRecord> eager = trainEagerly(recipe, plan.file.target, flags.seed,
                                                    run.firstStep + steps, batches, flags.weights);
  if (!eager) return eager.takeError();
  eager->losses.erase(eager->losses.begin(), eager->losses.begin() + run.firstStep);
  eager->reports.erase(eager->reports.begin(), eager->reports.begin() + run.firstStep);
  Comparison comparison;
  comparison.difference = firstDifference(*eager, run.training);
  comparison.eager = std::move(*eager);
  return comparison;
}

struct RunAnswer {
  const RunFlags& flags;
  const LoadedPlan& plan;
  const RunRecord& run;
  std::string data;
  const Comparison* comparison = nullptr;
};

std::string excessText(double value, double base) {
  return base <= 0 ? "" : fmt::format(", {:+.1f} %", (value / base - 1) * 100);
}

std::string stepText(const TrainingRecord& training, const std::string& excess) {
  if (training.secondsPerStep <= 0) return "step not measured: the first one does not count";
  return fmt::format("step {:.3f} s (measured{})", training.secondsPerStep, excess);
}

/// Null where nothing was measured.
nlohmann::ordered_json stepNanoseconds(const TrainingRecord& training) {
  if (training.secondsPerStep <= 0) return nullptr;
  return static_cast<int64_t>(training.secondsPerStep * 1e9);
}

void printAnswer(const RunAnswer& answer, llvm::raw_ostream& os) {
  const RunRecord& run = answer.run;
  const TrainingRecord& training = run.training;
  const double predicted =
      static_cast<double>(answer.plan.file.schedule.predicted.stepTime.value()) / 1e9;
  if (!answer.flags.resume.empty()) {
    os << fmt::format("resumed    after {} steps{}\n", run.firstStep,
                      run.samePlan ? "" : ", saved under another plan");
  }
  os << "data       " << answer.data << '\n';
  os << fmt::format("ran        {} steps{}: arena {}, high-water mark {}, {} allocations outside\n",
                    training.losses.size(), run.stopped ? " (asked to stop)" : "",
                    formatBytes(run.arena), formatBytes(run.highWaterMark), run.allocationsOutside);
  os << "           " << stepText(training, excessText(training.secondsPerStep, predicted)) << '\n';
  if (!training.losses.empty()) {
    os << fmt::format("           loss {:.4f} -> {:.4f}", training.losses.front(),
                      training.losses.back());
  }
  if (const Comparison* comparison = answer.comparison) {
    os << (comparison->difference.empty()
               ? ", identical bits to the unplanned run"
               : ", DIFFERENT from the unplanned run: " + comparison->difference);
    os << "\nunplanned  " << stepText(comparison->eager, "");
  }
  os << '\n';
  if (!answer.flags.save.empty()) os << "wrote      " << answer.flags.save << '\n';
}

void printJson(const RunAnswer& answer, llvm::raw_ostream& os) {
  const RunRecord& run = answer.run;
  nlohmann::ordered_json json = {
      {"steps", run.training.losses.size()},
      {"first_step", run.firstStep},
      {"stopped", run.stopped},
      {"data", answer.data},
      {"losses", run.training.losses},
      {"arena_bytes", run.arena.value()},
      {"high_water_bytes", run.highWaterMark.value()},
      {"allocations_outside", run.allocationsOutside},
      {"step_ns", stepNanoseconds(run.training)},
      {"predicted",
       {{"peak_bytes", answer.plan.file.schedule.predicted.peakBytes.value()},
        {"step_ns", answer.plan.file.schedule.predicted.stepTime.value()}}}};
  if (!answer.flags.resume.empty()) json["same_plan"] = run.samePlan;
  if (!answer.flags.save.empty()) json["saved"] = answer.flags.save;
  if (const Comparison* comparison = answer.comparison) {
    json["unplanned"] = {{"identical", comparison->difference.empty()},
                         {"difference", comparison->difference},
                         {"step_ns", stepNanoseconds(comparison->eager)}};
  }
  os << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

ir::Expected<RunRecord> train(const RunFlags& flags, const LoadedPlan& plan, Recaptured& again,
                              const ir::NodeCosts& costs, const BatchSource& batches) {
  std::signal(SIGTERM, askToStop);
  std::signal(SIGINT, askToStop);
  Progress progress(!flags.quiet && !flags.json);
  PlannedTraining training = {.graph = again.graph,
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
  return runByPlan(*again.step, training, options);
}

VerbResult runRun(const RunFlags& flags) {
  ir::Expected<LoadedPlan> plan = loadPlan(flags.plan, flags.graph);
  if (!plan) return plan.takeError();
  if (ir::Error error = proveAgain(flags.plan, *plan)) return error;
  if (ir::Error error = checkMachine(plan->file, flags.threads)) return error;
  ir::Expected<Recaptured> again = captureAgain(*plan, flags.seed);
  if (!again) return again.takeError();
  ir::Expected<std::unique_ptr<RunData>> data =
      openRunData(flags.data, again->step->training, flags.seed);
  if (!data) return data.takeError();
  const BatchSource batches = [&](int64_t position) { return (*data)->at(position); };
  ir::Expected<ir::NodeCosts> costs = measureAllocations(flags, *plan);
  if (!costs) return costs.takeError();

  ir::Expected<RunRecord> run = train(flags, *plan, *again, *costs, batches);
  if (!run) return run.takeError();

  RunAnswer answer = {.flags = flags, .plan = *plan, .run = *run, .data = (*data)->describe()};
  std::optional<Comparison> comparison;
  if (flags.compare) {
    ir::Expected<Comparison> compared =
        compareUnplanned(flags, *plan, again->recipe, batches, *run);
    if (!compared) return compared.takeError();
    comparison = std::move(*compared);
    answer.comparison = &*comparison;
  }
  flags.json ? printJson(answer, llvm::outs()) : printAnswer(answer, llvm::outs());
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
                      "safetensors files with every parameter and buffer; default: first values "
                      "drawn from --seed");
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
