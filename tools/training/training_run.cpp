// SPDX-License-Identifier: Apache-2.0
#include "tools/training/training_run.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "runtime/capture/graph/without_memory.h"
#include "runtime/capture/host_state/optimizer_state.h"
#include "runtime/checkpoint/state_io.h"
#include "runtime/torch/torch_types.h"
#include "tools/training/batches_ahead.h"
#include "tools/training/reference_mode.h"
#include "tools/training/step_counts.h"
#include "tools/training/step_timer.h"

namespace stowage::tools {

namespace {

/// Parameters, buffers and the optimizer's tensors, each with its name.
void forEachState(const TrainingStep& training,
                  llvm::function_ref<void(const std::string&, const at::Tensor&)> keep) {
  for (const auto& item : training.module->named_parameters()) {
    keep(item.key(), item.value());
    if (!training.optimizer) continue;
    runtime::forEachStateTensor(training.optimizer.get(), item.value(),
                                [&](const char* function, ir::Role, at::Tensor& tensor) {
                                  keep(std::string(function) + "(" + item.key() + ")", tensor);
                                });
  }
  for (const auto& item : training.module->named_buffers()) keep(item.key(), item.value());
}

void sortByName(TrainingRecord& record) {
  std::sort(record.state.begin(), record.state.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
}

void keepState(TrainingRecord& record, const TrainingStep& training) {
  forEachState(training, [&](const std::string& name, const at::Tensor& tensor) {
    record.state.emplace_back(name, digestOf(tensor));
  });
  sortByName(record);
}

/// A model whose values come from files is built without drawing any: minutes for a large one.
ir::Expected<TrainingStep> buildTraining(const Recipe& recipe, c10::Device device,
                                         bool drawsValues) {
  if (drawsValues) return makeTrainingStep(recipe.model, recipe.settings, device);
  std::optional<runtime::WithoutMemory> withoutMemory(std::in_place);
  ir::Expected<TrainingStep> training = makeTrainingStep(recipe.model, recipe.settings, device);
  withoutMemory.reset();
  if (!training) return training;
  const at::NoGradGuard guard;
  const auto giveMemory = [](at::Tensor& tensor) {
    tensor.set_data(at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()));
  };
  for (at::Tensor& parameter : training->module->parameters()) giveMemory(parameter);
  for (at::Tensor& buffer : training->module->buffers()) giveMemory(buffer);
  return training;
}

/// Puts what the files hold into the module. What is not there, or of another size, is an error.
ir::Error loadWeights(const TrainingStep& training, const std::vector<std::string>& files) {
  if (files.empty()) return ir::success();
  ir::Expected<runtime::StateFiles> state = runtime::StateFiles::open(files);
  if (!state) return state.takeError();
  const at::NoGradGuard guard;
  const auto load = [&](const std::string& name, const at::Tensor& tensor) -> ir::Error {
    const runtime::SafetensorsEntry* entry = state->find(name);
    if (entry == nullptr) {
      return ir::makeError(ir::ErrorCode::kPlanMismatch,
                           files.front() + ": missing '" + name + "'");
    }
    const at::Tensor values = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
    if (ir::Error error = state->readEntry(
            *entry, {static_cast<uint8_t*>(values.mutable_data_ptr()), values.nbytes()})) {
      return error;
    }
    tensor.copy_(values);
    return ir::success();
  };
  for (const auto& item : training.module->named_parameters()) {
    if (ir::Error error = load(item.key(), item.value())) return error;
  }
  for (const auto& item : training.module->named_buffers()) {
    if (ir::Error error = load(item.key(), item.value())) return error;
  }
  return ir::success();
}

/// What cannot be saved is no input's fault.
ir::Error save(runtime::Runner& runner, const std::string& folder) {
  ir::Error error = runner.save(folder);
  if (!error) return error;
  ir::PlanError problem = ir::takePayload(std::move(error));
  if (problem.code() != ir::ErrorCode::kIo) return ir::makeError(std::move(problem));
  ir::PlanError output(ir::ErrorCode::kEnvironment, problem.text());
  output.notesOf(problem);
  return ir::makeError(std::move(output).at(problem.location()));
}

/// The loss of a step that was enqueued.
ir::Error addLoss(runtime::Runner& runner, int64_t step, const RunOptions& options,
                  RunRecord& record) {
  ir::Expected<std::vector<at::Tensor>> reports = runner.reports(step);
  if (!reports) return reports.takeError();
  record.training.add(reports->front());
  const auto done = static_cast<int64_t>(record.training.losses.size());
  options.report(record.training.firstStep + done - 1, record.training.losses.back());
  return ir::success();
}

/// All that were enqueued, by the timer too.
ir::Error finishSteps(runtime::Runner& runner, StepTimer& timer) {
  if (ir::Error error = runner.finish()) return error;
  timer.finished();
  return ir::success();
}

class TimedSteps {
 public:
  explicit TimedSteps(TimedPart part) : part_(part) {}

  /// Before step `i` of the run is enqueued. Starting and ending the timing is not step time.
  ir::Error before(int64_t i, runtime::Runner& runner, StepTimer& timer) {
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
  /// Steps from `i` on that nothing may come between.
  int64_t together(int64_t i) const { return i == 1 + part_.untimed ? part_.timed : 1; }
  /// Between two of them, `i` the first: what is done there would count as a wait.
  bool isBetween(int64_t i) const { return i > part_.untimed && i < part_.untimed + part_.timed; }
  /// Mean of the steps before those.
  std::optional<Nanoseconds> untimed() const { return mean_; }

 private:
  TimedPart part_;
  std::optional<Nanoseconds> mean_;
};

ir::Error takeSteps(runtime::Runner& runner, const RunOptions& options, RunRecord& record) {
  StepTimer timer;
  TimedSteps times(options.times);
  std::optional<int64_t> last;  // its loss is read when the next step is under way
  bool isDue = false;           // a checkpoint
  const int64_t first = record.training.firstStep;
  BatchesAhead batches(
      options.batches, first, first + options.steps, [&] { return finishSteps(runner, timer); },
      [&] { timer.leaveOut(); });
  for (int64_t i = 0; i < options.steps && !record.stopped; ++i) {
    ir::Expected<Batch> batch = batches.next(times.together(i));
    if (!batch) return batch.takeError();
    if (ir::Error error = times.before(i, runner, timer)) return error;
    ir::Expected<int64_t> enqueued = runner.enqueue(*batch);
    if (!enqueued) return enqueued.takeError();
    if (last) {
      if (ir::Error error = addLoss(runner, *last, options, record)) return error;
    }
    last = *enqueued;
    if (i == 0) {
      if (ir::Error error = runner.finish()) return error;
    }
    timer.stepDone();
    record.stopped = options.stop();
    isDue |= options.saveEvery > 0 && (i + 1) % options.saveEvery == 0;
    if (isDue && !options.save.empty() && !times.isBetween(i)) {
      isDue = false;
      if (ir::Error error = finishSteps(runner, timer)) return error;
      if (ir::Error error = save(runner, options.save)) return error;
      timer.leaveOut();
    }
  }
  if (last) {
    if (ir::Error error = addLoss(runner, *last, options, record)) return error;
  }
  if (ir::Error error = finishSteps(runner, timer)) return error;
  record.pace = {.untimed = times.untimed(), .scalars = runner.scalarsTime()};
  record.training.secondsPerStep = timer.secondsPerStep();
  return options.save.empty() ? ir::success() : save(runner, options.save);
}

ir::Error measureMemory(runtime::Runner& runner, RunRecord& record) {
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
  return ir::success();
}

void waitFor(c10::Device device) {
  if (device.is_cuda()) at::accelerator::synchronizeDevice(device.index());
}

Bytes peakOf(c10::Device device) {
  const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return Bytes(
      stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak);
}

bool sameBytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

}  // namespace

ir::Expected<TrainingRecord> trainEagerly(const Recipe& recipe, const ir::Target& target,
                                          uint64_t seed, int64_t steps, const BatchSource& batches,
                                          const std::vector<std::string>& weights) {
  if (ir::Error error = checkReference(target)) return error;
  const ReferenceMode mode(target);
  const c10::Device device = runtime::toDevice(target.device);
  if (device.is_cuda()) at::getDeviceAllocator(device.type())->resetPeakStats(device.index());
  at::manual_seed(seed);
  ir::Expected<TrainingStep> training = buildTraining(recipe, device, weights.empty());
  if (!training) return training.takeError();
  if (ir::Error error = loadWeights(*training, weights)) return error;
  seedSteps(seed);
  TrainingRecord record;
  StepTimer timer;
  at::Tensor last;
  const auto stop = [&] {
    waitFor(device);
    timer.finished();
    return ir::success();
  };
  BatchesAhead ahead(batches, 0, steps, stop, [&] { timer.leaveOut(); });
  for (int64_t step = 0; step < steps; ++step) {
    ir::Expected<Batch> batch = ahead.next();
    if (!batch) return batch.takeError();
    for (at::Tensor& input : *batch) input = input.to(device);
    const std::vector<at::Tensor> reports = training->loss(*batch);
    training->update();
    // As training loops do it on a GPU: the loss of the step before, so that nothing waits for this
    // one. Another step might write over the tensor.
    if (last.defined()) record.add(last);
    last = reports.front().detach().clone();
    if (step == 0) waitFor(device);
    timer.stepDone();
  }
  if (last.defined()) record.add(last);
  waitFor(device);
  timer.finished();
  record.secondsPerStep = timer.secondsPerStep();
  if (device.is_cuda()) record.peak = peakOf(device);
  keepState(record, *training);
  return record;
}

namespace {

using RunnerPtr = std::unique_ptr<runtime::Runner>;

/// All but what the training leaves behind.
ir::Expected<RunnerPtr> runSteps(runtime::RunnableStep& step, const PlannedTraining& plan,
                                 const RunOptions& options, RunRecord& record) {
  runtime::RunnerOptions runnerOptions = plan.options;
  // The program's own models: nothing outside of the step changes between its steps.
  if (!runnerOptions.checkEvery) runnerOptions.checkEvery = 0;
  ir::Expected<RunnerPtr> runner = runtime::Runner::create(
      step,
      {.graph = plan.graph, .schedule = plan.schedule, .target = plan.target, .costs = plan.costs},
      std::move(runnerOptions));
  if (!runner) return runner.takeError();
  seedSteps(options.seed);
  if (!options.resume.empty()) {
    ir::Expected<runtime::ResumePoint> point = (*runner)->load(options.resume);
    if (!point) return point.takeError();
    record.training.firstStep = point->dataPosition;
    record.samePlan = point->samePlan;
  }
  if (ir::Error error = takeSteps(**runner, options, record)) return error;
  if (ir::Error error = measureMemory(**runner, record)) return error;
  return runner;
}

/// Persistent storages by their names; all, or those that are `wanted`.
ir::Error keepArenaState(runtime::Runner& runner, TrainingRecord& record,
                         const std::set<std::string>* wanted = nullptr) {
  const auto keep = [&](const ir::Storage& storage, llvm::ArrayRef<uint8_t> bytes) {
    if (wanted != nullptr && wanted->count(storage.name) == 0) return ir::success();
    record.state.emplace_back(storage.name, digestOf(bytes));
    return ir::success();
  };
  if (ir::Error error = runner.visitState(keep)) return error;
  sortByName(record);
  return ir::success();
}

}  // namespace

ir::Expected<RunRecord> runByPlan(ModelStep& step, const PlannedTraining& plan,
                                  const RunOptions& options) {
  RunRecord record;
  PlannedTraining planned = plan;
  planned.options.advance = [&](int64_t steps) { advanceCounts(step.training, steps); };
  ir::Expected<RunnerPtr> runner = runSteps(*step.captured, planned, options, record);
  if (!runner) return runner.takeError();
  if (!options.keepState) return record;
  // A module without memory for a GPU stays so: its values are read from the arenas.
  if (plan.target.device == ir::DeviceKind::kCuda) {
    std::set<std::string> names;
    forEachState(step.training,
                 [&](const std::string& name, const at::Tensor&) { names.insert(name); });
    if (ir::Error error = keepArenaState(**runner, record.training, &names)) return error;
    return record;
  }
  if (ir::Error error = (*runner)->storeTo()) return error;
  keepState(record.training, step.training);
  return record;
}

ir::Expected<RunRecord> runByPlan(runtime::GraphStep& step, const PlannedTraining& plan,
                                  const RunOptions& options) {
  RunRecord record;
  ir::Expected<RunnerPtr> runner = runSteps(step, plan, options, record);
  if (!runner) return runner.takeError();
  if (!options.keepState) return record;
  if (ir::Error error = keepArenaState(**runner, record.training)) return error;
  return record;
}

std::vector<std::string> findDifferences(const TrainingRecord& a, const TrainingRecord& b) {
  std::vector<std::string> differences;
  if (a.reports.size() != b.reports.size()) differences.emplace_back("the number of steps");
  for (size_t i = 0; i < std::min(a.reports.size(), b.reports.size()); ++i) {
    if (sameBytes(a.reports[i], b.reports[i])) continue;
    differences.push_back(a.lossName(i));
  }
  const auto lacks = [&](const std::string& name) {
    differences.push_back("state '" + name + "', which one of them lacks");
  };
  // Both are in order of name.
  auto x = a.state.begin();
  auto y = b.state.begin();
  while (x != a.state.end() || y != b.state.end()) {
    if (y == b.state.end() || (x != a.state.end() && x->first < y->first)) {
      lacks((x++)->first);
    } else if (x == a.state.end() || y->first < x->first) {
      lacks((y++)->first);
    } else {
      if (x->second != y->second) {
        differences.push_back("'" + x->first + "' after the last step");
      }
      ++x, ++y;
    }
  }
  return differences;
}

std::string firstDifference(const TrainingRecord& a, const TrainingRecord& b) {
  const std::vector<std::string> differences = findDifferences(a, b);
  return differences.empty() ? "" : differences.front();
}

}  // namespace stowage::tools
