// SPDX-License-Identifier: Apache-2.0
//
// In which steps of a run commands are timed: after the first step come `untimed` steps without
// times, then `timed` steps with them. Launch overhead rises in a process that has traced a GPU, so
// timed steps come last.
#ifndef STOWAGE_RUNTIME_TRAINING_TIMED_PART_H_
#define STOWAGE_RUNTIME_TRAINING_TIMED_PART_H_

#include <cstdint>

#include "ir/base/units.h"

namespace stowage::runtime {

struct TimedPart {
  int64_t untimed = 0;
  int64_t timed = 0;
};

/// For a training of `steps`: up to `most` steps with times, and as many without where they fit.
/// Fewer than three steps without times say too little; then there are none.
TimedPart splitSteps(int64_t steps, int64_t most);

/// For a measurement: as many steps as are predicted to take three seconds, at least 5, and at most
/// 20 with times and 500 without. (The clock of a GPU varies from step to step, launch overhead
/// over a second or two.) Steps without times run only where steps `mayBeLaunchBound`, because
/// taking times adds to launch overhead.
TimedPart partToMeasure(Nanoseconds predictedStep, bool mayBeLaunchBound);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_TIMED_PART_H_
