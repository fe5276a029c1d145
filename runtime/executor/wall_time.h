// SPDX-License-Identifier: Apache-2.0
//
// The clock by which work of the host is timed: it only goes forward. Its zero is any moment.
#ifndef STOWAGE_RUNTIME_EXECUTOR_WALL_TIME_H_
#define STOWAGE_RUNTIME_EXECUTOR_WALL_TIME_H_

#include <chrono>

#include "ir/base/units.h"

namespace stowage::runtime {

inline Nanoseconds wallTime() {
  return Nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::steady_clock::now().time_since_epoch())
                         .count());
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_WALL_TIME_H_
