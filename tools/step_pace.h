// SPDX-License-Identifier: Apache-2.0
#ifndef STOWAGE_TOOLS_STEP_PACE_H_
#define STOWAGE_TOOLS_STEP_PACE_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ir/units.h"

namespace stowage::tools {

/// What a run's steps took beside the times of their commands; nothing where it had too few steps.
struct StepPace {
  std::optional<Nanoseconds> untimed;  // mean of the steps before those that times were taken in
  std::optional<Nanoseconds> scalars;  // runtime::Runner::scalarsTime
};

/// Which steps of a run the times of commands are taken in: after the first, `untimed` without
/// (nothing said of them: as many as with, where the run is long enough), then `timed`. Not the
/// other way round: a process that traced a GPU was seen to issue more slowly from then on.
struct TimedPart {
  int64_t untimed = 0;
  int64_t timed = 0;
};
/// Both fit into `steps`, of which the first is left out; too few without times say nothing, and
/// none is taken for it then.
inline TimedPart splitSteps(int64_t steps, int64_t timed, std::optional<int64_t> untimed) {
  constexpr int64_t kFewestUntimed = 3;
  const int64_t rest = std::max<int64_t>(steps - 1, 0);
  TimedPart part = {.timed = std::min(timed, rest)};
  part.untimed = std::min(untimed.value_or(part.timed), rest - part.timed);
  if (part.untimed < kFewestUntimed) part.untimed = 0;
  return part;
}

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_STEP_PACE_H_
