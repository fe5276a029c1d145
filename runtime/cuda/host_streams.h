// SPDX-License-Identifier: Apache-2.0
//
// The streams of one program that are threads on the host: updates on the host, the disk's reads
// and writes. They wait for CUDA streams and CUDA streams wait for them, each without the launch
// thread:
//   - a thread asks for a CUDA event until it is finished (its work takes milliseconds, so short
//     sleeps between do not count);
//   - a CUDA stream waits for a number in pinned memory, which the thread writes.
// An event's number is the last step in which a thread finished it, plus one: it only rises.
#ifndef STOWAGE_RUNTIME_CUDA_HOST_STREAMS_H_
#define STOWAGE_RUNTIME_CUDA_HOST_STREAMS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/cuda/cuda_events.h"
#include "runtime/executor/device.h"
#include "runtime/executor/queued_program.h"
#include "runtime/executor/stream_queue.h"

namespace stowage::runtime {

/// Is `stream` a thread on the host?
bool isHostStream(ir::Stream stream);

class HostStreams {
 public:
  /// Null if the schedule has no such stream. `threads` outlive it, and are drained before it goes.
  /// Errors: kCuda, kUnsupported for a driver whose streams cannot wait for memory.
  static ir::Expected<std::unique_ptr<HostStreams>> make(const ProgramSource& source,
                                                         QueuedStreams& threads);
  ~HostStreams();
  HostStreams(const HostStreams&) = delete;
  HostStreams& operator=(const HostStreams&) = delete;

  /// `work` runs on the stream's thread unless something failed before.
  void push(ir::Stream stream, std::function<ir::Error()> work);
  void record(ir::Stream stream, EventRef event);
  /// Was it recorded by such a stream?
  bool isOwn(EventRef event) const { return isOwn_[static_cast<size_t>(event.event)]; }
  /// The thread waits for another one's event, or for a CUDA stream's.
  void wait(ir::Stream stream, EventRef event);
  void wait(ir::Stream stream, const CudaEvents& events, EventRef event);
  /// A CUDA stream waits for a thread's event.
  cudaError_t wait(cudaStream_t stream, EventRef event) const;
  /// Blocks until a thread's event is finished.
  void waitOnHost(EventRef event) { counters_.wait(event); }
  /// cudaSuccess if it is finished, or cudaErrorNotReady. Does not block.
  cudaError_t query(EventRef event) const;

 private:
  using WaitValue = int (*)(cudaStream_t, unsigned long long, uint32_t,
                            unsigned);  // NOLINT: theirs
  HostStreams(QueuedStreams& threads, int32_t eventCount, uint32_t* numbers, WaitValue waitValue);

  QueuedStreams& threads_;
  EventCounters counters_;
  std::vector<bool> isOwn_;  // by event
  uint32_t* numbers_;        // by event, in pinned memory
  WaitValue waitValue_;      // cuStreamWaitValue32
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_HOST_STREAMS_H_
