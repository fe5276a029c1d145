// SPDX-License-Identifier: Apache-2.0
//
// stowage run plan.json --steps 100 --data tokens.safetensors --weights model.safetensors --save
// out
//
// Trains by a plan that was made before: an example model is captured again from the recipe in the
// graph and must have the plan's fingerprint, an imported step is its graph; either runs inside the
// plan's arenas. The plan is proved
// again from the file's bytes and compared with this machine. Nothing is decided here unless
// --replan says so: what does not fit, with other offsets either, is refused.
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>
#include <optional>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/torch/torch_version.h"
#include "runtime/training/comparison.h"
#include "runtime/training/replay_training.h"
#include "runtime/training/timed_part.h"
#include "runtime/training/training_notes.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/printable_stream.h"
#include "tools/cli/progress.h"
#include "tools/cli/stop_signal.h"
#include "tools/files/load_files.h"
#include "tools/files/save_folder.h"
#include "tools/files/whole_file.h"
#include "tools/machine/machine_load.h"
#include "tools/machine/this_machine.h"
#include "tools/run/plan_ladder.h"
#include "tools/run/rank_processes.h"
#include "tools/run/run_checks.h"
#include "tools/run/run_costs.h"
#include "tools/run/run_data.h"
#include "tools/run/run_flags.h"
#include "tools/run/run_output.h"
#include "tools/run/run_ranks.h"
#include "tools/run/run_source.h"
#include "tools/training/model_training.h"
#include "tools/training/resume_check.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

/// What the run begins with, checked before anything is measured.
struct Beginning {
  uint64_t seed = 0;
  std::optional<double> learningRate;
  runtime::TrainingNotes saved;  // of the checkpoint
};

/// --resume brings its own first values and random numbers.
ir::Expected<Beginning> readResume(const RunFlags& flags) {
  Beginning beginning{.seed = flags.seed.value_or(0), .learningRate = flags.learningRate};
  if (flags.resume.empty()) return beginning;
  const auto refuse = [](const std::string& flag, const char* why) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         flag + " does not go with --resume: " + why);
  };
  if (flags.seed) return refuse("--seed", "the checkpoint has the training's seed");
  if (flags.randomWeights) return refuse("--random-weights", "values are the checkpoint's");
  if (!flags.weights.empty() && !flags.compare) {
    return refuse("--weights",
                  "values are the checkpoint's (only --compare-unplanned, which trains from the "
                  "first step, still needs them)");
  }
  ir::Expected<runtime::Checkpoint> checkpoint = runtime::Checkpoint::open(flags.resume);
  if (!checkpoint) return checkpoint.takeError();
  beginning.saved = checkpoint->progress().notes;
  beginning.seed = runtime::notedSeed(beginning.saved).value_or(0);
  if (!beginning.learningRate) beginning.learningRate = runtime::notedLearningRate(beginning.saved);
  return beginning;
}

/// What this training is; the same as the checkpoint's, when it goes on from one.
ir::Expected<runtime::TrainingNotes> identify(const RunFlags& flags, const LoadedPlan& plan,
                                              const Beginning& beginning, const RunData& data) {
  runtime::TrainingNotes now = runtime::toNotes(
      {.recipe = plan.graph.provenance().recipe,
       .seed = beginning.seed,
       .data = data.identity(),
       .learningRate = beginning.learningRate,
       .numerics = runtime::describeNumerics(plan.file.target, runtime::torchVersion())});
  const ResumeCheck check = {
      .folder = flags.resume, .saved = beginning.saved, .now = now, .otherData = flags.otherData};
  if (ir::Error error = checkSameTraining(check)) return error;
  const std::string numerics = runtime::otherNumerics(now, beginning.saved);
  if (!numerics.empty()) remark(flags.resume + ": " + numerics, flags);
  return now;
}

ir::Expected<std::optional<runtime::CheckpointClaim>> claimFolder(const RunFlags& flags) {
  SaveRequest request = {.folder = flags.save,
                         .resume = flags.resume,
                         .inputs = flags.weights,
                         .replace = flags.replace};
  request.inputs.insert(request.inputs.end(), flags.data.begin(), flags.data.end());
  return claimSaveFolder(request);
}

ir::Expected<RunSource> openSource(const RunFlags& flags, const LoadedPlan& plan,
                                   const Beginning& beginning) {
  RunSourceOptions options;
  options.imported = {
      .weights = flags.weights,
      .archive = flags.archive,
      .folder = "",
      .randomWeights = flags.randomWeights || (!flags.resume.empty() && !flags.compare),
      .seed = beginning.seed,
      .learningRate = beginning.learningRate,
      .hasData = !flags.data.empty()};
  if (flags.learningRate) options.importFlags.emplace_back("--lr");
  if (!flags.archive.empty()) options.importFlags.emplace_back("--archive");
  if (flags.randomWeights) options.importFlags.emplace_back("--random-weights");
  return openRunSource(plan, std::move(options));
}

/// A training with all that it takes.
struct Training {
  const LoadedPlan& plan;
  RunSource& source;
  const ir::NodeCosts& costs;
  const runtime::BatchSource& batches;
  uint64_t seed = 0;
  const runtime::TrainingNotes& notes;
  const runtime::TrainingRanks* ranks = nullptr;
};

/// The whole training from its first step, by plain libtorch; an imported step op by op.
ir::Expected<runtime::Comparison> compareUnplanned(const RunFlags& flags, const Training& training,
                                                   const runtime::RunRecord& run) {
  const LoadedPlan& plan = training.plan;
  const RunSource& source = training.source;
  Progress progress(!flags.quiet && !flags.json);
  const auto steps = run.training.firstStep + static_cast<int64_t>(run.training.losses.size());
  const runtime::BatchSource batches = [&](int64_t step) -> ir::Expected<runtime::Batch> {
    if (stopSignal() != 0) return ir::makeError(ir::ErrorCode::kEnvironment, "stopped");
    progress.show(fmt::format("unplanned training, step {} of {}", step + 1, steps));
    return training.batches(step);
  };
  const auto trainUnplanned = [&]() -> ir::Expected<runtime::TrainingRecord> {
    ir::Expected<runtime::TrainingRecord> eager =
        source.model ? trainEagerly(source.recipe, plan.file.target, training.seed, steps, batches,
                                    flags.weights)
                     : runtime::trainByReplay({.step = source.imported->step(),
                                               .schedule = plan.file.schedule,
                                               .planned = plan.graph,
                                               .target = plan.file.target,
                                               .weights = flags.weights},
                                              training.seed, steps, batches);
    if (!eager) return ofStepFile(eager.takeError(), source.file);
    eager->dropBefore(run.training.firstStep);
    return eager;
  };
  return runtime::compareWithUnplanned(plan.graph, run.training, trainUnplanned);
}

ir::Expected<runtime::RunRecord> train(const RunFlags& flags, const Training& training) {
  catchStopSignals();
  Progress progress(!flags.quiet && !flags.json);
  runtime::PlannedTraining planned = {.graph = training.source.graph,
                                      .schedule = training.plan.file.schedule,
                                      .target = training.plan.file.target,
                                      .costs = &training.costs};
  if (flags.resume.empty()) planned.options.weights = flags.weights;
  planned.options.notes = training.notes;
  planned.options.ranks = training.ranks;
  planned.options.checkEvery = flags.checkEvery;
  planned.options.diskFolder = flags.disk;
  planned.options.verifyDisk = flags.verifyDisk;
  if (flags.throttle) planned.options.links = training.costs.links;
  runtime::TrainingOptions options;
  options.seed = training.seed;
  options.steps = flags.steps;
  options.batches = training.batches;
  options.resume = flags.resume;
  options.save = flags.save;
  options.saveEvery = flags.pauses.saveEvery;
  options.releaseEvery = flags.pauses.releaseEvery;
  options.keepState = flags.compare;
  if (flags.times.any()) options.times = runtime::splitSteps(flags.steps, kTimedSteps);
  options.stop = [] { return stopSignal() != 0; };
  planned.options.pinning = showPinning(progress);
  options.report = [&progress](int64_t step, double loss) {
    progress.show(fmt::format("step {}  loss {:.4f}", step + 1, loss));
  };
  return runByPlan(training.source, planned, options);
}

/// Of a rank that stopped because another one was asked to: as if it had been.
int stoppedCode() { return kExitStopped + (stopSignal() != 0 ? stopSignal() : SIGTERM); }

/// Whether the plan may run here, with these flags, on so many ranks.
ir::Error checkRun(const RunFlags& flags, const LoadedPlan& plan, int64_t ranks) {
  if (ir::Error error = checkRanks(plan.file, ranks, flags)) return error;
  if (ir::Error error = checkTimesOf(plan, flags.times, flags.costs)) return error;
  if (ir::Error error = checkPlan(plan, flags.costs)) return error;
  if (ir::Error error = checkRoomFor(flags.save, plan.graph, plan.file.schedule)) return error;
  if (flags.throttle && plan.file.target.device != ir::DeviceKind::kCpu) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "--throttle-links goes with steps for the CPU: a GPU's links are there");
  }
  if (flags.compare) {
    if (ir::Error error = checkComparable(plan.file)) return error;
  }
  if (ir::Error error = checkDiskFolder(plan.file, flags.disk)) return error;
  remark(describeUnusedDisk(plan.file, flags.disk), flags);
  if (ir::Error error = openGpuFor(plan.file.target)) return error;
  remark(describeMemoryCount(plan.file.target), flags);
  return checkMachine(plan.file, flags.threads);
}

/// What the run came to, with all that was asked for beside it.
VerbResult answerRun(const RunFlags& flags, const Training& training, const CostsHere& costs,
                     const RunData& data, const runtime::RunRecord& run) {
  const LoadedPlan& plan = training.plan;
  const MeasuredSteps measured = measuredSteps(plan, costs, run.times);
  auto kept = keepTimes(flags.times, flags, {plan, costs, measured, run.pace});
  if (!kept) return kept.takeError();
  const RunSource& source = training.source;
  RunAnswer answer = {
      .plan = plan.file,
      .run = run,
      .data = data.describe(),
      .weights = source.model || !flags.resume.empty() ? "" : source.imported->origin(),
      .resume = flags.resume,
      .save = flags.save,
      .times = *kept};
  if (!kept->timeline.empty()) answer.timeline = summarizeSteps(measured);
  std::optional<runtime::Comparison> comparison;
  if (flags.compare && stopSignal() == 0) {
    ir::Expected<runtime::Comparison> compared = compareUnplanned(flags, training, run);
    if (!compared && stopSignal() == 0) return compared.takeError();
    if (compared) {
      comparison = std::move(*compared);
      answer.comparison = &*comparison;
    } else {
      (void)ir::takePayload(compared.takeError());
    }
  }
  if (flags.compare && !comparison) remark("stopped: not compared with unplanned training", flags);
  StepComparison step = {.predicted = plan.file.schedule.predicted.stepTime,
                         .measured = run.training.meanStep(),
                         .commands = plan.file.schedule.commands.size(),
                         .costs = plan.file.costs.source};
  remark(describeOffPrediction(step), flags);
  if (comparison) {
    step.measured = comparison->eager.meanStep();
    remark(describeSlowReference(step), flags);
  }
  flags.json ? printRunJson(answer) : printRunAnswer(answer, answers());
  if (comparison && !comparison->difference.empty()) return kExitNo;
  return run.stopped || stopSignal() != 0 ? stoppedCode() : kExitYes;
}

VerbResult runRun(const RunFlags& flags, const std::optional<runtime::LaunchedRank>& rank,
                  RankMeeting& meeting) {
  ir::Expected<Beginning> beginning = readResume(flags);
  if (!beginning) return beginning.takeError();
  // Until the run ends; rank 0 writes.
  auto claim = flags.speaks ? claimFolder(flags) : std::optional<runtime::CheckpointClaim>();
  if (!claim) return claim.takeError();
  std::vector<std::string> inputs = {flags.plan, flags.graph, flags.costs, flags.archive};
  inputs.insert(inputs.end(), flags.data.begin(), flags.data.end());
  inputs.insert(inputs.end(), flags.weights.begin(), flags.weights.end());
  if (ir::Error error = checkTimesFiles(flags.times, flags, flags.steps, inputs)) return error;
  ir::Expected<LoadedPlan> plan = loadPlan(flags.plan, flags.graph);
  if (!plan) return plan.takeError();
  if (ir::Error error = checkRun(flags, *plan, rank ? rank->count : 1)) return error;
  if (ir::Error error = meeting.join()) return error;
  ir::Expected<RunSource> source = openSource(flags, *plan, *beginning);
  if (!source) return source.takeError();
  ir::Expected<std::unique_ptr<RunData>> data =
      openRunData(flags.data, source->inputs(), beginning->seed);
  if (!data) return data.takeError();
  ir::Expected<runtime::TrainingNotes> notes = identify(flags, *plan, *beginning, **data);
  if (!notes) return notes.takeError();
  const runtime::BatchSource batches = batchesOf(*source, **data);
  ir::Expected<CostsHere> costs =
      measureAllocations({.plan = *plan, .costs = flags.costs, .flags = flags});
  if (!costs) return costs.takeError();
  if (flags.throttle) {
    if (ir::Error error = checkThrottle(*costs, flags.costs)) return error;
  }
  const LadderRequest ladder = {.costs = *costs, .replan = flags.replan, .flags = flags};
  if (ir::Error error = fitToMachine(*plan, ladder)) return error;
  if (ir::Error error = arrangeAs(*plan, *source)) return error;

  const Training training = {.plan = *plan,
                             .source = *source,
                             .costs = costs->nodes,
                             .batches = batches,
                             .seed = beginning->seed,
                             .notes = *notes,
                             .ranks = meeting.ranks()};
  if (flags.speaks && !flags.json) printExpected(plan->file, answers());
  ir::Expected<runtime::RunRecord> run = train(flags, training);
  if (!run) return run.takeError();
  if (!flags.speaks) return run->stopped ? stoppedCode() : kExitYes;
  return answerRun(flags, training, *costs, **data, *run);
}

/// What is wrong in each of them is said once.
VerbResult startRanks(const RunFlags& flags) {
  ir::Expected<LoadedPlan> plan = loadPlan(flags.plan, flags.graph);
  if (!plan) return plan.takeError();
  if (ir::Error error = checkRanks(plan->file, flags.ranks, flags)) return error;
  return runRanks(flags.ranks);
}

VerbResult runAsRank(RunFlags& flags) {
  ir::Expected<std::optional<runtime::LaunchedRank>> rank = findRank(flags.ranks);
  if (!rank) return rank.takeError();
  if (!*rank && flags.ranks > 1) return startRanks(flags);
  takeRank(*rank, flags);
  RankMeeting meeting(*rank);
  return meeting.end(runRun(flags, *rank, meeting));
}

}  // namespace

Verb addRunVerb(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "train by a plan, inside its budget");
  addRunFlags(*command, *flags);
  return {.command = command, .run = [flags] { return runAsRank(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
