// SPDX-License-Identifier: Apache-2.0
//
// A training by a plan: steps until the last one or a stop, checkpoints, losses and the times of
// steps. In: a step, its plan, batches. Out: a record that can be compared with that of another
// training. Not here: planning, and what the step was captured from.
#ifndef STOWAGE_RUNTIME_TRAINING_PLANNED_TRAINING_H_
#define STOWAGE_RUNTIME_TRAINING_PLANNED_TRAINING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "ir/costs/cost_table.h"
#include "ir/costs/step_times.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "runtime/runner/runnable_step.h"
#include "runtime/runner/runner.h"
#include "runtime/training/batch.h"
#include "runtime/training/module_state.h"
#include "runtime/training/timed_part.h"
#include "runtime/training/training_record.h"

namespace stowage::runtime {

struct PlannedTraining {
  const ir::Graph& graph;
  const ir::Schedule& schedule;
  const ir::Target& target;
  const ir::NodeCosts* costs = nullptr;
  RunnerOptions options = {};
};

/// A training may be saved, stopped early, and resumed from what was saved.
struct TrainingOptions {
  uint64_t seed = 0;
  int64_t steps = 0;  // of this run
  BatchSource batches;
  std::string resume;     // folder of a checkpoint; "": from the first values
  std::string save;       // folder; "": nothing is saved
  int64_t saveEvery = 0;  // steps; 0: at the end only
  /// After so many steps the device arena is released, and restored at once; 0: never.
  int64_t releaseEvery = 0;
  bool keepState = false;  // in the record, to compare it
  TimedPart times;         // the steps in which all commands are timed; none: in no step
  std::function<bool()> stop = [] { return false; };  // asked after every step
  std::function<void(int64_t step, double loss)> report = [](int64_t, double) {};
};

/// The device arena was released, and restored.
struct ArenaRelease {
  ArenaCopy out;
  ArenaCopy back;
};

struct RunRecord {
  TrainingRecord training;  // of this run's steps
  bool samePlan = true;     // as the checkpoint's
  bool stopped = false;
  Bytes arena;
  std::optional<Bytes> peak;  // Runner::peak
  Bytes highWaterMark;        // Runner::highWaterMark
  int64_t allocationsOutside = 0;
  int64_t recordings = 0;              // launch modes: of steps or parts of them
  std::optional<Bytes> memoryOutside;  // of a GPU
  std::string transport;               // between ranks
  std::vector<ArenaRelease> releases;
  std::vector<ir::StepTimes> times;  // when they were asked for
  ir::StepPace pace;
};

/// With ranks (RunnerOptions::ranks), a step takes as many batches as there are, each rank its own;
/// losses are the mean, each rank draws from `seed` plus its number, and all stop where one does.
/// `step` is used up. The state that is kept is that of `module`, which gets its values from the
/// arenas; without `module` it is every persistent storage. Errors: those of Runner, of the batches
/// and of saving: kEnvironment where a checkpoint cannot be written.
ir::Expected<RunRecord> runByPlan(RunnableStep& step, const PlannedTraining& plan,
                                  const TrainingOptions& options,
                                  const TrainedModule* module = nullptr);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_PLANNED_TRAINING_H_
