// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/timed_part.h"

#include <algorithm>

namespace stowage::runtime {

TimedPart splitSteps(int64_t steps, int64_t most) {
  constexpr int64_t kFewestUntimed = 3;
  const int64_t rest = std::max<int64_t>(steps - 1, 0);
  TimedPart part = {.timed = std::min(most, rest)};
  part.untimed = std::min(part.timed, rest - part.timed);
  if (part.untimed < kFewestUntimed) part.untimed = 0;
  return part;
}

TimedPart partToMeasure(Nanoseconds predictedStep, bool mayBeLaunchBound) {
  constexpr Nanoseconds kMeasured(3'000'000'000);
  constexpr int64_t kFewest = 5;
  constexpr int64_t kMostTimed = 20;
  constexpr int64_t kMostUntimed = 500;
  const int64_t steps = kMeasured.value() / std::max<int64_t>(predictedStep.value(), 1);
  return {.untimed = mayBeLaunchBound ? std::clamp(steps, kFewest, kMostUntimed) : 0,
          .timed = std::clamp(steps, kFewest, kMostTimed)};
}

}  // namespace stowage::runtime
