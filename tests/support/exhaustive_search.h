// SPDX-License-Identifier: Apache-2.0
//
// Every schedule of a small step, looked at: all choices of what leaves the device and when, of
// copies started at any event and still running over the boundary of the step, of recomputes
// anywhere, of in-place reuse. A state is what is where and what is under way; the states at
// the boundary of the step and the shortest times between them form a graph, whose cycles are the
// steady states.
// Written for tests of the lower bound: shares no code with the planner and looks at nothing but
// the small step.
#ifndef STOWAGE_TESTS_SUPPORT_EXHAUSTIVE_SEARCH_H_
#define STOWAGE_TESTS_SUPPORT_EXHAUSTIVE_SEARCH_H_

#include <cstdint>

#include "tests/support/small_step.h"

namespace stowage::tests {

enum class Verdict : uint8_t {
  kNoSchedule,  // none fits the budget
  kNotFaster,   // none has an average period below the asked one
  kFaster
};

/// Is there a steady state within `budgetUnits` of device bytes whose average period is below
/// `period` nanoseconds?
Verdict searchAllSchedules(const SmallStep& step, int budgetUnits, int64_t period);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_EXHAUSTIVE_SEARCH_H_
