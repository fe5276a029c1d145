// SPDX-License-Identifier: Apache-2.0
#include "tools/training_run.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "runtime/capture/optimizer_state.h"

namespace stowage::tools {

namespace {

using Clock = std::chrono::steady_clock;

/// Random numbers of the steps start here in both trainings, whatever construction drew.
void seedSteps(uint64_t seed) { at::manual_seed(seed ^ 0x5354455053ULL); }

class StepTimer {
 public:
  void stepDone() {
    const Clock::time_point now = Clock::now();
    if (steps_++ > 0) total_ += now - last_;
    last_ = now;
  }
  double secondsPerStep() const {
    return steps_ < 2
               ? 0
               : std::chrono::duration<double>(total_).count() / static_cast<double>(steps_ - 1);
  }

 private:
  int64_t steps_ = 0;
  Clock::time_point last_;
  Clock::duration total_{};
};

void addReport(TrainingRecord& record, const at::Tensor& report) {
  record.reports.push_back(report.detach().clone());
  record.losses.push_back(report.item<double>());
}

/// Parameters, buffers and the optimizer's tensors, by name.
void keepState(TrainingRecord& record, const TrainingStep& training) {
  const auto keep = [&](const std::string& name, const at::Tensor& tensor) {
    record.state.emplace_back(name, tensor.detach().contiguous());
  };
  for (const auto& item : training.module->named_parameters()) {
    keep(item.key(), item.value());
    if (!training.optimizer) continue;
    runtime::forEachStateTensor(*training.optimizer, item.value(),
                                [&](const char* function, ir::Role, at::Tensor& tensor) {
                                  keep(std::string(function) + "(" + item.key() + ")", tensor);
                                });
  }
  for (const auto& item : training.module->named_buffers()) keep(item.key(), item.value());
  std::sort(record.state.begin(), record.state.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
}

bool sameBytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

}  // namespace

ir::Expected<TrainingRecord> trainEagerly(const Recipe& recipe, const ir::Target& target,
                                          uint64_t seed, int64_t steps,
                                          const BatchSource& batches) {
  at::set_num_threads(target.intraOpThreads);
  at::globalContext().setDeterministicAlgorithms(target.deterministic, /*warn_only=*/false);
  at::manual_seed(seed);
  ir::Expected<TrainingStep> training = makeTrainingStep(recipe.model, recipe.settings);
  if (!training) return training.takeError();
  seedSteps(seed);
  TrainingRecord record;
  StepTimer timer;
  for (int64_t step = 0; step < steps; ++step) {
    ir::Expected<Batch> batch = batches(step);
    if (!batch) return batch.takeError();
    const std::vector<at::Tensor> reports = training->loss(*batch);
    addReport(record, reports.front());
    training->update();
    timer.stepDone();
  }
  record.secondsPerStep = timer.secondsPerStep();
  keepState(record, *training);
  return record;
}

ir::Expected<TrainingRecord> trainByPlan(ModelStep& step, const PlannedTraining& plan,
                                         uint64_t seed, int64_t steps, const BatchSource& batches) {
  ir::Expected<std::unique_ptr<runtime::Runner>> runner = runtime::Runner::create(
      *step.captured,
      {.graph = plan.graph, .schedule = plan.schedule, .target = plan.target, .costs = plan.costs},
      plan.options);
  if (!runner) return runner.takeError();
  seedSteps(seed);
  TrainingRecord record;
  StepTimer timer;
  for (int64_t i = 0; i < steps; ++i) {
    ir::Expected<Batch> batch = batches(i);
    if (!batch) return batch.takeError();
    ir::Expected<std::vector<at::Tensor>> reports = (*runner)->step(*batch);
    if (!reports) return reports.takeError();
    addReport(record, reports->front());
    timer.stepDone();
  }
  record.secondsPerStep = timer.secondsPerStep();
  if (ir::Error error = (*runner)->storeTo()) return error;
  keepState(record, step.training);
  return record;
}

std::string firstDifference(const TrainingRecord& a, const TrainingRecord& b) {
  if (a.reports.size() != b.reports.size()) return "the number of steps";
  for (size_t i = 0; i < a.reports.size(); ++i) {
    if (!sameBytes(a.reports[i], b.reports[i])) return "the loss of step " + std::to_string(i);
  }
  if (a.state.size() != b.state.size()) return "the number of state tensors";
  for (size_t i = 0; i < a.state.size(); ++i) {
    if (a.state[i].first != b.state[i].first || !sameBytes(a.state[i].second, b.state[i].second)) {
      return "'" + a.state[i].first + "' after the last step";
    }
  }
  return "";
}

}  // namespace stowage::tools
