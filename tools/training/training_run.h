// SPDX-License-Identifier: Apache-2.0
//
// The same training twice: by a plan, and by plain libtorch (`loss.backward(); optimizer.step()`),
// from the same first values, random state and batches. What `run` and `demo` show, and what the
// tests of the whole chain compare.
#ifndef STOWAGE_TOOLS_TRAINING_TRAINING_RUN_H_
#define STOWAGE_TOOLS_TRAINING_TRAINING_RUN_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/costs/step_times.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "runtime/runner/graph_step.h"
#include "runtime/runner/runner.h"
#include "tools/training/model_step.h"
#include "tools/training/timed_part.h"
#include "tools/training/training_record.h"

namespace stowage::tools {

using Batch = std::vector<at::Tensor>;
using BatchSource = std::function<ir::Expected<Batch>(int64_t step)>;

/// Plain libtorch, with the target's threads and deterministic mode. `weights`: safetensors files
/// with the first values of all parameters and buffers.
ir::Expected<TrainingRecord> trainEagerly(const Recipe& recipe, const ir::Target& target,
                                          uint64_t seed, int64_t steps, const BatchSource& batches,
                                          const std::vector<std::string>& weights = {});

struct PlannedTraining {
  const ir::Graph& graph;
  const ir::Schedule& schedule;
  const ir::Target& target;
  const ir::NodeCosts* costs = nullptr;
  runtime::RunnerOptions options = {};
};

/// The step op by op with ordinary memory, without a plan: what a planned run of an imported step
/// is compared with. `step` gives inputs and first values, `weights` those of parameters and
/// buffers where they come from files; `schedule` says which state lasts between steps.
struct ReplayTraining {
  const runtime::GraphStep& step;
  const ir::Schedule& schedule;
  const ir::Graph& planned;  // the schedule's
  const ir::Target& target;
  std::vector<std::string> weights;
};
ir::Expected<TrainingRecord> trainByReplay(const ReplayTraining& replay, uint64_t seed,
                                           int64_t steps, const BatchSource& batches);

/// A training that may be taken up where it was saved, stopped early and saved.
struct RunOptions {
  uint64_t seed = 0;
  int64_t steps = 0;  // of this run
  BatchSource batches;
  std::string resume;      // folder of a checkpoint; "": from the first values
  std::string save;        // folder; "": nothing is saved
  int64_t saveEvery = 0;   // steps; 0: at the end only
  bool keepState = false;  // in the record, to compare it
  TimedPart times;         // in these steps those of all commands are taken; none: in no step
  std::function<bool()> stop = [] { return false; };  // asked after every step
  std::function<void(int64_t step, double loss)> report = [](int64_t, double) {};
};
struct RunRecord {
  TrainingRecord training;  // of this run's steps
  bool samePlan = true;     // as the checkpoint's
  bool stopped = false;
  Bytes arena;
  std::optional<Bytes> peak;  // runtime::Runner::peak
  Bytes highWaterMark;        // runtime::Runner::highWaterMark
  int64_t allocationsOutside = 0;
  int64_t recordings = 0;              // launch modes: of steps or parts of them
  std::optional<Bytes> memoryOutside;  // of a GPU
  std::vector<ir::StepTimes> times;    // when they were asked for
  ir::StepPace pace;
};
/// By plan. `step` is used up; one of a model was captured from the same recipe and seed.
ir::Expected<RunRecord> runByPlan(ModelStep& step, const PlannedTraining& plan,
                                  const RunOptions& options);
ir::Expected<RunRecord> runByPlan(runtime::GraphStep& step, const PlannedTraining& plan,
                                  const RunOptions& options);

/// What differs between two trainings, byte for byte: losses first, then parameters, buffers and
/// optimizer state by name: "the loss of step 3", "'wte.weight' after the last step".
std::vector<std::string> findDifferences(const TrainingRecord& a, const TrainingRecord& b);
/// The first of them; "" when everything is equal.
std::string firstDifference(const TrainingRecord& a, const TrainingRecord& b);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_TRAINING_TRAINING_RUN_H_
