// SPDX-License-Identifier: Apache-2.0
//
// An example model trained by a plan, and by plain libtorch from its recipe: what `run` and `demo`
// show, and what the tests of the whole chain compare. Both trainings begin with the same first
// values, RNG state and batches. The training itself: runtime/training.
#ifndef STOWAGE_TOOLS_TRAINING_MODEL_TRAINING_H_
#define STOWAGE_TOOLS_TRAINING_MODEL_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/schedule/target.h"
#include "runtime/training/batch.h"
#include "runtime/training/planned_training.h"
#include "runtime/training/training_record.h"
#include "tools/training/model_step.h"

namespace stowage::tools {

/// Plain libtorch, with the target's threads and deterministic mode. `weights`: safetensors files
/// with the first values of all parameters and buffers. Errors: those of makeTrainingStep, the
/// files and runtime::trainEagerly.
ir::Expected<runtime::TrainingRecord> trainEagerly(const Recipe& recipe, const ir::Target& target,
                                                   uint64_t seed, int64_t steps,
                                                   const runtime::BatchSource& batches,
                                                   const std::vector<std::string>& weights = {});

/// By plan. `step` is used up; it was captured from the same recipe and seed. By default steps are
/// not compared with their code: nothing outside of an example model's step changes it.
ir::Expected<runtime::RunRecord> runByPlan(ModelStep& step, const runtime::PlannedTraining& plan,
                                           const runtime::TrainingOptions& options);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_TRAINING_MODEL_TRAINING_H_
