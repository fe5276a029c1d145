// SPDX-License-Identifier: Apache-2.0
//
// What trainings that are compared have in common: where their random numbers start, and how their
// steps are timed.
#ifndef STOWAGE_RUNTIME_TRAINING_STEP_TIMER_H_
#define STOWAGE_RUNTIME_TRAINING_STEP_TIMER_H_

#include <ATen/Context.h>

#include <chrono>
#include <cstdint>

namespace stowage::runtime {

/// Random numbers of the steps start here in both trainings, whatever construction drew.
inline void seedSteps(uint64_t seed) { at::manual_seed(seed ^ 0x5354455053ULL); }

/// Mean time of all steps but the first. Steps that run on after they were enqueued must be waited
/// for before the first `stepDone` and before `finished`: else the mean lacks a part of a step.
class StepTimer {
 public:
  void finished() {
    if (steps_ < 2) return;
    const Clock::time_point now = Clock::now();
    total_ += now - last_;
    last_ = now;
  }
  /// What passed since `finished` is no part of any step.
  void leaveOut() { last_ = Clock::now(); }
  void stepDone() {
    const Clock::time_point now = Clock::now();
    if (steps_++ > 0) total_ += now - last_;
    last_ = now;
  }
  double secondsPerStep() const {
    return steps_ < 2
               ? 0
               : std::chrono::duration<double>(total_).count() / static_cast<double>(steps_ - 1);
  }

 private:
  using Clock = std::chrono::steady_clock;
  int64_t steps_ = 0;
  Clock::time_point last_;
  Clock::duration total_{};
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_STEP_TIMER_H_
