// SPDX-License-Identifier: Apache-2.0
//
// Which steps of a run the times of commands are taken in: after the first, `untimed` without, then
// `timed` with. Not the other way round: launch overhead rises in a process that traced a GPU.
#ifndef STOWAGE_TOOLS_TRAINING_TIMED_PART_H_
#define STOWAGE_TOOLS_TRAINING_TIMED_PART_H_

#include <cstdint>

#include "ir/base/units.h"

namespace stowage::tools {

struct TimedPart {
  int64_t untimed = 0;
  int64_t timed = 0;
};

/// Of a training of `steps`: up to `most` with times, and as many without where they fit; fewer
/// than three of these say nothing, and none counts then.
TimedPart splitSteps(int64_t steps, int64_t most);

/// What a measurement runs: as many steps as three seconds hold by the prediction, though 5 at
/// least and at most 20 with times, 500 without (the clock of a GPU varies from step to step,
/// launch overhead over a second or two). Steps without times only where steps `mayBeLaunchBound`,
/// since taking times adds to launch overhead.
TimedPart partToMeasure(Nanoseconds predictedStep, bool mayBeLaunchBound);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_TRAINING_TIMED_PART_H_
