// SPDX-License-Identifier: Apache-2.0
//
// A step that is known by its graph alone, trained without a plan: its ops one after another with
// ordinary memory, from the first values that the planned run has. What a planned run of an
// imported step is compared with.
#ifndef STOWAGE_RUNTIME_TRAINING_REPLAY_TRAINING_H_
#define STOWAGE_RUNTIME_TRAINING_REPLAY_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "runtime/runner/graph_step.h"
#include "runtime/training/batch.h"
#include "runtime/training/training_record.h"

namespace stowage::runtime {

struct ReplayTraining {
  const GraphStep& step;         // gives inputs and first values
  const ir::Schedule& schedule;  // says which state lasts between steps
  const ir::Graph& planned;      // the schedule's
  const ir::Target& target;
  std::vector<std::string> weights;  // safetensors files: first values of parameters and buffers
};
/// Errors: those of `batches` and of the ops; kEnvironment when this machine does not give the
/// target's threads.
ir::Expected<TrainingRecord> trainByReplay(const ReplayTraining& replay, uint64_t seed,
                                           int64_t steps, const BatchSource& batches);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_REPLAY_TRAINING_H_
