// SPDX-License-Identifier: Apache-2.0
//
// The CUDA events of a program: two for each of its own, this step's and that of the step before.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_EVENTS_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_EVENTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_status.h"
#include "runtime/executor/device.h"

namespace stowage::runtime {

/// Also knows in which step each was last recorded for the host and the streams to wait for.
class CudaEvents {
 public:
  static ir::Expected<CudaEvents> make(int32_t count) {
    CudaEvents events;
    events.recordedIn_.assign(static_cast<size_t>(2 * count), -1);
    for (int32_t i = 0; i < 2 * count; ++i) {
      cudaEvent_t event = nullptr;
      if (ir::Error error = checkCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                      "making an event")) {
        return error;
      }
      events.events_.push_back(event);
    }
    return events;
  }
  CudaEvents() = default;
  CudaEvents(CudaEvents&& other) noexcept
      : events_(std::exchange(other.events_, {})), recordedIn_(std::move(other.recordedIn_)) {}
  CudaEvents& operator=(CudaEvents&&) = delete;
  ~CudaEvents() {
    for (cudaEvent_t event : events_) (void)cudaEventDestroy(event);
  }
  /// Steps take turns: this one's, and the one before.
  cudaEvent_t at(EventRef ref) const { return events_[placeOf(ref)]; }
  void noteRecorded(EventRef ref) { recordedIn_[placeOf(ref)] = ref.step; }
  /// False for one that was only recorded in a graph.
  bool isRecorded(EventRef ref) const { return recordedIn_[placeOf(ref)] == ref.step; }

 private:
  static size_t placeOf(EventRef ref) {
    return static_cast<size_t>(2 * ref.event + (ref.step % 2));
  }

  std::vector<cudaEvent_t> events_;
  std::vector<int64_t> recordedIn_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_EVENTS_H_
