// SPDX-License-Identifier: Apache-2.0
//
// When kernels and copies ran, as the driver's tracing records it (CUPTI): a step is not disturbed
// by events between its kernels. Each command gets a number while it is enqueued. Kernels, copies
// and fills that are launched meanwhile belong to it. One trace at a time in a process;
// another profiler at work (Nsight, torch's own) makes `start` fail.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_ACTIVITY_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_ACTIVITY_H_

#include <cstdint>
#include <map>
#include <memory>

#include "ir/base/error.h"
#include "ir/base/units.h"

namespace stowage::runtime {

/// From the first begin to the last end of what belongs to a number; the driver's clock.
struct ActivitySpan {
  Nanoseconds begin;
  Nanoseconds end;
};

class ActivityTrace {
 public:
  /// Errors: kEnvironment with CUPTI's reason.
  static ir::Expected<std::unique_ptr<ActivityTrace>> start();
  ~ActivityTrace();
  ActivityTrace(const ActivityTrace&) = delete;
  ActivityTrace& operator=(const ActivityTrace&) = delete;

  /// What this thread launches from here to endWork has this number.
  void beginWork(uint64_t number);
  void endWork();
  /// The driver's clock, now.
  static Nanoseconds now();
  /// Ends the trace. The device must be idle. By number. Errors: kEnvironment when records were
  /// lost.
  ir::Expected<std::map<uint64_t, ActivitySpan>> finish();
  /// After finish: a time of now() as nanoseconds since the trace began. The driver's clock does
  /// not run at the machine's speed everywhere (virtual machines).
  Nanoseconds sinceBegin(Nanoseconds driverTime) const;

 private:
  /// One time, read on both clocks.
  struct ClockPair {
    Nanoseconds driver;
    Nanoseconds machine;
    static ClockPair now();
  };
  ActivityTrace() : begin_(ClockPair::now()) {}

  ClockPair begin_;
  double speed_ = 1;  // machine nanoseconds per nanosecond of the driver
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_ACTIVITY_H_
