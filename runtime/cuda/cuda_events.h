// SPDX-License-Identifier: Apache-2.0
//
// The CUDA events of a program: two for each of its own, this step's and that of the step before.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_EVENTS_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_EVENTS_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_status.h"
#include "runtime/executor/device.h"

namespace stowage::runtime {

/// Also knows in which step each was last recorded. An event is recorded again only when the step
/// two before is over, so one that belongs to a later step was finished in the earlier one.
class CudaEvents {
 public:
  static ir::Expected<CudaEvents> make(int32_t count) {
    CudaEvents events(2 * count);
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
  CudaEvents(CudaEvents&& other) noexcept
      : events_(std::exchange(other.events_, {})), recordedIn_(std::move(other.recordedIn_)) {}
  CudaEvents& operator=(CudaEvents&&) = delete;
  ~CudaEvents() {
    for (cudaEvent_t event : events_) (void)cudaEventDestroy(event);
  }
  /// Steps take turns: this one's, and the one before.
  cudaEvent_t at(EventRef ref) const { return events_[placeOf(ref)]; }
  /// Before it is recorded.
  void noteRecorded(EventRef ref) { recordedIn_[placeOf(ref)].store(ref.step); }
  /// Does it belong to that step? False also for one that was only recorded in a graph. Any thread
  /// may ask.
  bool isRecorded(EventRef ref) const { return recordedIn_[placeOf(ref)].load() == ref.step; }

 private:
  explicit CudaEvents(int32_t places)
      : recordedIn_(std::make_unique<std::atomic<int64_t>[]>(static_cast<size_t>(places))) {
    for (int32_t i = 0; i < places; ++i) recordedIn_[static_cast<size_t>(i)].store(-1);
  }
  static size_t placeOf(EventRef ref) {
    return 2 * static_cast<size_t>(ref.event) + static_cast<size_t>(ref.step % 2);
  }

  std::vector<cudaEvent_t> events_;
  std::unique_ptr<std::atomic<int64_t>[]> recordedIn_;  // by place
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_EVENTS_H_
