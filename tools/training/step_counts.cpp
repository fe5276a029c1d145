// SPDX-License-Identifier: Apache-2.0
#include "tools/training/step_counts.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <vector>

#include "runtime/capture/host_state/host_rewind.h"

namespace stowage::tools {

namespace {

/// Of the state of one parameter, if it is of one of these types.
template <typename... States>
void addSteps(torch::optim::OptimizerParamState& state, int64_t steps) {
  const auto add = [&](auto* counted) {
    if (counted != nullptr) counted->step(counted->step() + steps);
  };
  (add(dynamic_cast<States*>(&state)), ...);
}

}  // namespace

void advanceCounts(const TrainingStep& training, int64_t steps) {
  // SGD counts nothing, and stowage::AdamW in tensors of the step.
  for (auto& [parameter, state] : training.optimizer->state()) {
    addSteps<torch::optim::AdamParamState, torch::optim::AdamWParamState>(*state, steps);
  }
  if (!training.scheduler) return;
  const std::vector<torch::optim::LRScheduler*> schedulers = {training.scheduler.get()};
  std::vector<unsigned> counts = runtime::schedulerCounts(schedulers);
  counts.front() += static_cast<unsigned>(steps);
  runtime::rewindSchedulers(schedulers, counts);
}

}  // namespace stowage::tools
