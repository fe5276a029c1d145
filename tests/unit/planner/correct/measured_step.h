// SPDX-License-Identifier: Apache-2.0
//
// The measured step of planner/correct/README.md: a schedule and the times of its commands, for
// tests of what follows from them.
#ifndef STOWAGE_TESTS_UNIT_PLANNER_CORRECT_MEASURED_STEP_H_
#define STOWAGE_TESTS_UNIT_PLANNER_CORRECT_MEASURED_STEP_H_

#include <cstddef>
#include <cstdint>

#include "ir/costs/step_times.h"
#include "ir/schedule/schedule.h"

namespace stowage::tests {

inline constexpr size_t kFirst = 0;
inline constexpr size_t kPrefetch = 1;
inline constexpr size_t kReader = 2;
inline constexpr size_t kOffload = 3;
inline constexpr size_t kLast = 4;

/// Three launches; the second reads what is prefetched, the first of the next step writes what is
/// copied out.
inline ir::Schedule makeSchedule() {
  ir::Schedule schedule;
  schedule.commands.resize(5);
  for (const size_t run : {kFirst, kReader, kLast}) schedule.commands[run].node = ir::NodeId(0);
  for (const size_t copy : {kPrefetch, kOffload}) {
    schedule.commands[copy].kind = ir::CommandKind::kCopy;
    schedule.commands[copy].stream =
        copy == kPrefetch ? ir::Stream::kHostToDevice : ir::Stream::kDeviceToHost;
  }
  schedule.commands[kReader].wait = {ir::CommandId(kPrefetch)};
  schedule.commands[kOffload].wait = {ir::CommandId(kFirst)};
  schedule.commands[kFirst].prev = {ir::CommandId(kOffload)};
  return schedule;
}

inline ir::CommandTimes times(int64_t launchEnd, int64_t begin, int64_t end) {
  return {Nanoseconds(launchEnd - 1), Nanoseconds(launchEnd), Nanoseconds(begin), Nanoseconds(end)};
}

inline ir::StepTimes makeStep(int64_t step, int64_t at) {
  ir::StepTimes made{.step = step, .commands = {}};
  made.commands.resize(5);
  made.commands[kFirst] = times(at + 5, at + 10, at + 20);
  made.commands[kPrefetch] = times(at + 6, at + 10, at + 50);
  made.commands[kReader] = times(at + 7, at + 52, at + 60);
  made.commands[kOffload] = times(at + 8, at + 20, at + 110);
  made.commands[kLast] = times(at + 70, at + 73, at + 100);
  return made;
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_UNIT_PLANNER_CORRECT_MEASURED_STEP_H_
