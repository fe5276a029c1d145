// SPDX-License-Identifier: Apache-2.0
#ifndef STOWAGE_TOOLS_TRAINING_STEP_PACE_H_
#define STOWAGE_TOOLS_TRAINING_STEP_PACE_H_

#include <optional>

#include "ir/base/units.h"

namespace stowage::tools {

/// What a run's steps took beside the times of their commands; nothing where it had too few steps.
struct StepPace {
  std::optional<Nanoseconds> untimed;  // mean of the steps before those that times were taken in
  std::optional<Nanoseconds> scalars;  // runtime::Runner::scalarsTime
};

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_TRAINING_STEP_PACE_H_
