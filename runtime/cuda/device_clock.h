// SPDX-License-Identifier: Apache-2.0
//
// A trace's times of kernels as times since the trace's begin.
#ifndef STOWAGE_RUNTIME_CUDA_DEVICE_CLOCK_H_
#define STOWAGE_RUNTIME_CUDA_DEVICE_CLOCK_H_

#include <cmath>

#include "ir/base/units.h"
#include "runtime/cuda/cuda_activity.h"

namespace stowage::runtime {

/// Kernels' times in a trace are stretched by a few per cent on some machines; how long all of them
/// took together is known from events.
class DeviceClock {
 public:
  /// `between`: two moments that lie `together` apart, by the driver's clock; 0: unknown.
  DeviceClock(ActivitySpan between, Nanoseconds together, const ActivityTrace& trace)
      : trace_(trace), first_(between.begin) {
    if (together == Nanoseconds(0) || between.end <= between.begin) return;
    speed_ = static_cast<double>(together.value()) /
             static_cast<double>((between.end - between.begin).value());
  }

  Nanoseconds sinceBegin(Nanoseconds time) const {
    const auto passed = static_cast<double>((time - first_).value());
    return trace_.sinceBegin(first_) + Nanoseconds(std::llround(passed * speed_));
  }

 private:
  const ActivityTrace& trace_;
  Nanoseconds first_;
  double speed_ = 1;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_DEVICE_CLOCK_H_
