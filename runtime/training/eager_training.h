// SPDX-License-Identifier: Apache-2.0
//
// A training by plain libtorch (`loss.backward(); optimizer.step()`), from the closures that are
// captured for a plan: what a planned training is compared with.
#ifndef STOWAGE_RUNTIME_TRAINING_EAGER_TRAINING_H_
#define STOWAGE_RUNTIME_TRAINING_EAGER_TRAINING_H_

#include <cstdint>
#include <functional>

#include "ir/base/error.h"
#include "ir/schedule/target.h"
#include "runtime/capture/capture.h"
#include "runtime/training/batch.h"
#include "runtime/training/training_record.h"

namespace stowage::runtime {

/// Builds the module on the target's device, and its closures. Called once, before the first step,
/// with libtorch seeded and in the target's mode. What the closures use outlives the training.
using MakeClosures = std::function<ir::Expected<StepFunctions>()>;

/// `steps` steps from the first, with the target's threads and deterministic mode. `seed`: of first
/// values and of the steps' random numbers. Errors: those of `make` and `batches`; kEnvironment
/// when this machine does not give the target's threads. What the closures throw is not caught.
ir::Expected<TrainingRecord> trainEagerly(const MakeClosures& make, const ir::Target& target,
                                          uint64_t seed, int64_t steps, const BatchSource& batches);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_EAGER_TRAINING_H_
