// SPDX-License-Identifier: Apache-2.0
//
// How far launches may be ahead of the GPU where it waits for other ranks. CUDA itself holds a
// launch when about a thousand are pending, and whoever is held there does not notice that the rank
// that all wait for is gone; so the launch thread waits before, where it looks.
#ifndef STOWAGE_RUNTIME_CUDA_RUN_AHEAD_H_
#define STOWAGE_RUNTIME_CUDA_RUN_AHEAD_H_

#include <array>
#include <cstddef>
#include <utility>

#include "ir/base/error.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

class RunAhead {
  static constexpr size_t kMarks = 4;
  static constexpr size_t kBetween = 128;  // launches; each may be several kernels

 public:
  /// Errors: kCuda.
  static ir::Expected<RunAhead> make() {
    RunAhead ahead;
    for (cudaEvent_t& event : ahead.events_) {
      if (ir::Error error = checkCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                      "making an event")) {
        return error;
      }
    }
    return ahead;
  }
  RunAhead(RunAhead&& other) noexcept
      : events_(std::exchange(other.events_, {})), launches_(other.launches_) {}
  RunAhead& operator=(RunAhead&&) = delete;
  ~RunAhead() {
    for (cudaEvent_t event : events_) {
      if (event != nullptr) (void)cudaEventDestroy(event);
    }
  }

  /// Before a launch.
  ir::Error noteLaunch(CudaState& device) {
    if (!device.ranks || ++launches_ % kBetween != 0) return ir::success();
    const size_t mark = launches_ / kBetween;
    cudaEvent_t event = events_[mark % kMarks];
    if (mark > kMarks) {
      if (ir::Error error = device.waitFor(event, "a kernel of the step")) return error;
    }
    return device.check(cudaEventRecord(event, device.compute.stream()), "recording an event");
  }

 private:
  RunAhead() = default;
  std::array<cudaEvent_t, kMarks> events_{};
  size_t launches_ = 0;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_RUN_AHEAD_H_
