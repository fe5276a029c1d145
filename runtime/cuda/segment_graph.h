// SPDX-License-Identifier: Apache-2.0
//
// A segment of a step as one CUDA graph: recorded once, launched in every step after. All streams
// fork from the compute stream at its begin and join it at its end, in the graph and outside.
// Random numbers: the generator's offset is an input of the graph; what is drawn is what the same
// step would draw without a graph.
#ifndef STOWAGE_RUNTIME_CUDA_SEGMENT_GRAPH_H_
#define STOWAGE_RUNTIME_CUDA_SEGMENT_GRAPH_H_

#include <ATen/cuda/CUDAGraph.h>

#include <memory>

#include "ir/base/error.h"
#include "runtime/cuda/cuda_state.h"

namespace stowage::runtime {

class SegmentGraph {
 public:
  /// From here on work is recorded instead of run. Errors: kTorch.
  static ir::Expected<std::unique_ptr<SegmentGraph>> beginRecording(CudaState& state);
  /// Ends the recording without a use for it; for a step that failed.
  ~SegmentGraph();
  SegmentGraph(const SegmentGraph&) = delete;
  SegmentGraph& operator=(const SegmentGraph&) = delete;

  /// Errors: kTorch with what could not be recorded.
  ir::Error endRecording();
  bool isRecording() const { return isRecording_; }
  /// Everything enqueued before is done first; what is enqueued after waits for it.
  ir::Error launch();

 private:
  SegmentGraph(CudaState& state, cudaEvent_t fork) : state_(state), meeting_(fork) {}
  ir::Error join();
  ir::Error fork();

  CudaState& state_;
  cudaEvent_t meeting_;
  at::cuda::CUDAGraph graph_;
  bool isRecording_ = false;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_SEGMENT_GRAPH_H_
