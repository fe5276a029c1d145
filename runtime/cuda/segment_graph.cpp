// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/segment_graph.h"

#include <c10/cuda/CUDAGuard.h>

#include "runtime/cuda/cuda_rng.h"
#include "this_torch/cuda_rng_in_graph.h"

namespace stowage::runtime {

using ir::Stream;

ir::Expected<std::unique_ptr<SegmentGraph>> SegmentGraph::beginRecording(CudaState& state) {
  cudaEvent_t meeting = nullptr;
  if (ir::Error error = checkCuda(cudaEventCreateWithFlags(&meeting, cudaEventDisableTiming),
                                  "making an event")) {
    return error;
  }
  std::unique_ptr<SegmentGraph> made(new SegmentGraph(state, meeting));
  // What was enqueued before is not part of it.
  if (ir::Error error = made->join()) return error;
  ir::Error begun = callTorch("recording a CUDA graph", [&] {
    const c10::cuda::CUDAStreamGuard guard(state.compute);
    registerRandomNumbers(made->graph_);
    made->graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    prepareRandomNumbersInGraph();
  });
  if (begun) return begun;
  made->isRecording_ = true;
  if (ir::Error error = made->fork()) return error;
  return made;
}

SegmentGraph::~SegmentGraph() {
  if (isRecording_) {
    dropError(join());
    dropError(callTorch("recording a CUDA graph", [&] {
      const c10::cuda::CUDAStreamGuard guard(state_.compute);
      graph_.capture_end();
    }));
  }
  (void)cudaEventDestroy(meeting_);
}

ir::Error SegmentGraph::endRecording() {
  if (ir::Error error = join()) return error;
  isRecording_ = false;
  return callTorch("recording a CUDA graph", [&] {
    const c10::cuda::CUDAStreamGuard guard(state_.compute);
    graph_.capture_end();
  });
}

ir::Error SegmentGraph::launch() {
  if (ir::Error error = join()) return error;
  ir::Error launched = callTorch("launching a CUDA graph", [&] {
    const c10::cuda::CUDAStreamGuard guard(state_.compute);
    graph_.replay();
  });
  if (launched) return launched;
  return fork();
}

// The compute stream goes on when the others are done.
ir::Error SegmentGraph::join() {
  for (const Stream stream : {Stream::kDeviceToHost, Stream::kHostToDevice}) {
    if (ir::Error error =
            checkCuda(cudaEventRecord(meeting_, state_.raw(stream)), "recording an event")) {
      return error;
    }
    if (ir::Error error = checkCuda(cudaStreamWaitEvent(state_.raw(Stream::kCompute), meeting_, 0),
                                    "joining streams")) {
      return error;
    }
  }
  return ir::success();
}

// The others go on when the compute stream is done.
ir::Error SegmentGraph::fork() {
  if (ir::Error error = checkCuda(cudaEventRecord(meeting_, state_.raw(Stream::kCompute)),
                                  "recording an event")) {
    return error;
  }
  for (const Stream stream : {Stream::kDeviceToHost, Stream::kHostToDevice}) {
    if (ir::Error error =
            checkCuda(cudaStreamWaitEvent(state_.raw(stream), meeting_, 0), "forking streams")) {
      return error;
    }
  }
  return ir::success();
}

}  // namespace stowage::runtime
