// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/planned_training.h"

#include <llvm/ADT/ArrayRef.h>

#include <memory>
#include <set>
#include <utility>

#include "runtime/training/batches_ahead.h"
#include "runtime/training/rank_talk.h"
#include "runtime/training/step_timer.h"

namespace stowage::runtime {

namespace {

/// A checkpoint that cannot be written is an error of the environment, not of an input.
ir::Error save(Runner& runner, const std::string& folder, int64_t dataPosition) {
  ir::Error error = runner.save(folder, dataPosition);
  if (!error) return error;
  ir::PlanError problem = ir::takePayload(std::move(error));
  if (problem.code() != ir::ErrorCode::kIo) return ir::makeError(std::move(problem));
  ir::PlanError output(ir::ErrorCode::kEnvironment, problem.text());
  output.notesOf(problem);
  return ir::makeError(std::move(output).at(problem.location()));
}

/// A run of steps that has begun.
struct Run {
  Runner& runner;
  const TrainingOptions& options;
  const RankTalk& ranks;
  ResumePoint start;
  RunRecord& record;

  /// Of this rank; every rank has its own of the batches that a step takes.
  ir::Expected<Batch> batchOf(int64_t step) const {
    return options.batches(positionAt(step) + ranks.rank());
  }
  ir::Error save() const {
    const int64_t done = runner.stepsDone() - start.steps;
    return runtime::save(runner, options.save, positionAt(record.training.firstStep + done));
  }

 private:
  int64_t positionAt(int64_t step) const {
    return start.dataPosition + (step - record.training.firstStep) * ranks.count();
  }
};

/// The loss of a step that was enqueued; with ranks, their mean.
ir::Error addLoss(const Run& run, int64_t step) {
  ir::Expected<std::vector<at::Tensor>> reports = run.runner.reports(step);
  if (!reports) return reports.takeError();
  const TrainingOptions& options = run.options;
  RunRecord& record = run.record;
  record.training.add(reports->front());
  ir::Expected<double> mean = run.ranks.meanOf(record.training.losses.back());
  if (!mean) return mean.takeError();
  record.training.losses.back() = *mean;
  const auto done = static_cast<int64_t>(record.training.losses.size());
  options.report(record.training.firstStep + done - 1, record.training.losses.back());
  return ir::success();
}

/// Waits for all steps that were enqueued and stops the timer.
ir::Error finishSteps(Runner& runner, StepTimer& timer) {
  if (ir::Error error = runner.finish()) return error;
  timer.finished();
  return ir::success();
}

class TimedSteps {
 public:
  explicit TimedSteps(TimedPart part) : part_(part) {}

  /// Before step `i` of the run is enqueued. Starting and ending the timing is not step time.
  ir::Error before(int64_t i, Runner& runner, StepTimer& timer) {
    const bool begins = i == 1 + part_.untimed;
    const bool ended = i == 1 + part_.untimed + part_.timed;
    if (part_.timed == 0 || !(begins || ended)) return ir::success();
    if (ir::Error error = finishSteps(runner, timer)) return error;
    if (begins && part_.untimed > 0) {
      mean_ = Nanoseconds(static_cast<int64_t>(timer.secondsPerStep() * 1e9));
    }
    ir::Error error = begins ? runner.takeTimes(part_.timed) : runner.takenTimes().takeError();
    timer.leaveOut();
    return error;
  }
  /// How many steps from `i` on must follow each other without a pause.
  int64_t together(int64_t i) const { return i == 1 + part_.untimed ? part_.timed : 1; }
  /// Whether steps `i` and `i` + 1 are both timed: a pause between them would count as a wait.
  bool isBetween(int64_t i) const { return i > part_.untimed && i < part_.untimed + part_.timed; }
  /// Mean of the steps before the timed ones.
  std::optional<Nanoseconds> untimed() const { return mean_; }

 private:
  TimedPart part_;
  std::optional<Nanoseconds> mean_;
};

ir::Error releaseAndRestore(Runner& runner, RunRecord& record) {
  ir::Expected<ArenaCopy> out = runner.release();
  if (!out) return out.takeError();
  ir::Expected<ArenaCopy> back = runner.restore();
  if (!back) return back.takeError();
  record.releases.push_back({*out, *back});
  return ir::success();
}

/// What is done between two steps, while none runs: checkpoints, releases of the arena.
class Pauses {
 public:
  explicit Pauses(const TrainingOptions& options) : options_(options) {}

  void stepDone(int64_t steps) {
    const auto isEvery = [&](int64_t every) { return every > 0 && steps % every == 0; };
    saves_ |= isEvery(options_.saveEvery) && !options_.save.empty();
    releases_ |= isEvery(options_.releaseEvery);
  }
  bool isDue() const { return saves_ || releases_; }
  ir::Error take(const Run& run) {
    if (std::exchange(saves_, false)) {
      if (ir::Error error = run.save()) return error;
    }
    if (!std::exchange(releases_, false)) return ir::success();
    return releaseAndRestore(run.runner, run.record);
  }

 private:
  const TrainingOptions& options_;
  bool saves_ = false;
  bool releases_ = false;
};

ir::Error takeSteps(const Run& run) {
  Runner& runner = run.runner;
  const TrainingOptions& options = run.options;
  RunRecord& record = run.record;
  StepTimer timer;
  TimedSteps times(options.times);
  std::optional<int64_t> last;  // its loss is read when the next step is under way
  Pauses pauses(options);
  const int64_t first = record.training.firstStep;
  const BatchSource own = [&](int64_t step) { return run.batchOf(step); };
  BatchesAhead batches(
      own, first, first + options.steps, [&] { return finishSteps(runner, timer); },
      [&] { timer.leaveOut(); });
  for (int64_t i = 0; i < options.steps && !record.stopped; ++i) {
    ir::Expected<Batch> batch = batches.next(times.together(i));
    if (!batch) return batch.takeError();
    if (ir::Error error = times.before(i, runner, timer)) return error;
    ir::Expected<int64_t> enqueued = runner.enqueue(*batch);
    if (!enqueued) return enqueued.takeError();
    if (last) {
      if (ir::Error error = addLoss(run, *last)) return error;
    }
    last = *enqueued;
    if (i == 0) {
      if (ir::Error error = runner.finish()) return error;
    }
    timer.stepDone();
    ir::Expected<bool> stops = run.ranks.anyOf(options.stop());
    if (!stops) return stops.takeError();
    record.stopped = *stops;
    pauses.stepDone(i + 1);
    if (pauses.isDue() && !times.isBetween(i)) {
      if (ir::Error error = finishSteps(runner, timer)) return error;
      if (ir::Error error = pauses.take(run)) return error;
      timer.leaveOut();
    }
  }
  if (last) {
    if (ir::Error error = addLoss(run, *last)) return error;
  }
  if (ir::Error error = finishSteps(runner, timer)) return error;
  record.pace = {.untimed = times.untimed(), .scalars = runner.scalarsTime()};
  record.training.secondsPerStep = timer.secondsPerStep();
  return options.save.empty() ? ir::success() : run.save();
}

ir::Error measureMemory(Runner& runner, RunRecord& record) {
  if (ir::Error error = runner.checkCanaries()) return error;
  ir::Expected<Bytes> mark = runner.highWaterMark();
  if (!mark) return mark.takeError();
  record.highWaterMark = *mark;
  record.peak = runner.peak();
  record.arena = runner.arenaBytes();
  ir::Expected<std::vector<ir::StepTimes>> times = runner.takenTimes();
  if (!times) return times.takeError();
  record.times = std::move(*times);
  record.allocationsOutside = runner.allocationsOutside();
  record.recordings = runner.recordings();
  record.memoryOutside = runner.memoryOutside();
  record.transport = runner.transport();
  return ir::success();
}

using RunnerPtr = std::unique_ptr<Runner>;

/// Runs all steps. The state is not read yet.
ir::Expected<RunnerPtr> runSteps(RunnableStep& step, const PlannedTraining& plan,
                                 const TrainingOptions& options, RunRecord& record) {
  ir::Expected<RunnerPtr> runner = Runner::create(
      step,
      {.graph = plan.graph, .schedule = plan.schedule, .target = plan.target, .costs = plan.costs},
      plan.options);
  if (!runner) return runner.takeError();
  const RankTalk ranks(plan.options.ranks);
  seedSteps(options.seed + static_cast<uint64_t>(ranks.rank()));
  ResumePoint start{.samePlan = true};
  if (!options.resume.empty()) {
    ir::Expected<ResumePoint> point = (*runner)->load(options.resume);
    if (!point) return point.takeError();
    start = *point;
  }
  if (ir::Error error = ranks.agreeOn(options, start)) return error;
  record.samePlan = start.samePlan;
  record.training.firstStep = ranks.count() == 1 ? start.dataPosition : start.steps;
  const Run run = {
      .runner = **runner, .options = options, .ranks = ranks, .start = start, .record = record};
  if (ir::Error error = takeSteps(run)) return error;
  if (ir::Error error = measureMemory(**runner, record)) return error;
  return runner;
}

/// Digests of the persistent storages that have one of these names; without names of all.
ir::Error keepArenaState(Runner& runner, const std::optional<std::set<std::string>>& names,
                         TrainingRecord& record) {
  const auto keep = [&](const ir::Storage& storage, llvm::ArrayRef<uint8_t> bytes) {
    if (names && names->count(storage.name) == 0) return ir::success();
    record.state.emplace_back(storage.name, digestOf(bytes));
    return ir::success();
  };
  if (ir::Error error = runner.visitState(keep)) return error;
  record.sortState();
  return ir::success();
}

ir::Error train(RunnableStep& step, const PlannedTraining& plan, const TrainingOptions& options,
                const TrainedModule* module, RunRecord& record) {
  ir::Expected<RunnerPtr> runner = runSteps(step, plan, options, record);
  if (!runner) return runner.takeError();
  if (!options.keepState) return ir::success();
  // A module without memory for a GPU stays so: its values are read from the arenas.
  const bool onGpu = plan.target.device == ir::DeviceKind::kCuda;
  if (module != nullptr && !onGpu) {
    if (ir::Error error = (*runner)->storeTo()) return error;
    keepState(*module, record.training);
    return ir::success();
  }
  std::optional<std::set<std::string>> names;
  if (module != nullptr) names = stateNames(*module);
  return keepArenaState(**runner, names, record.training);
}

}  // namespace

ir::Expected<RunRecord> runByPlan(RunnableStep& step, const PlannedTraining& plan,
                                  const TrainingOptions& options, const TrainedModule* module) {
  RunRecord record;
  // The runner is gone by then, and no step of it is under way.
  const RankTalk ranks(plan.options.ranks);
  if (ir::Error error = ranks.giveUpWith(train(step, plan, options, module, record))) return error;
  return record;
}

}  // namespace stowage::runtime
