// SPDX-License-Identifier: Apache-2.0
//
// The time that a piece of a stream takes on the device, between two events.
#ifndef STOWAGE_RUNTIME_CUDA_STOPWATCH_H_
#define STOWAGE_RUNTIME_CUDA_STOPWATCH_H_

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

class Stopwatch {
 public:
  Stopwatch() {
    (void)cudaEventCreate(&begin_);
    (void)cudaEventCreate(&end_);
  }
  ~Stopwatch() {
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void start(cudaStream_t stream) { (void)cudaEventRecord(begin_, stream); }
  void stop(cudaStream_t stream) { (void)cudaEventRecord(end_, stream); }
  /// Waits for the piece. Once per stop.
  ir::Expected<Nanoseconds> read() {
    if (ir::Error error = checkCuda(cudaEventSynchronize(end_), "a timed kernel")) return error;
    float milliseconds = 0;
    if (ir::Error error =
            checkCuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "reading a time")) {
      return error;
    }
    return Nanoseconds(static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6));
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_STOPWATCH_H_
