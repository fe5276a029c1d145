// SPDX-License-Identifier: Apache-2.0
//
// Where random numbers are while a CUDA graph is recorded, in torch 2.15.0: a generator's state has
// one of its own for each recording, which begins with the first op that draws numbers there.
#ifndef STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_CUDA_RNG_IN_GRAPH_H_
#define STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_CUDA_RNG_IN_GRAPH_H_

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <mutex>
#include <optional>

namespace stowage::runtime {

/// The offset counted from the graph's begin; none while nothing is recorded.
inline std::optional<uint64_t> offsetInGraph(const at::CUDAGeneratorState& state) {
  const std::optional<c10::CaptureId_t> recording = c10::cuda::currentStreamCaptureIdMayInitCtx();
  if (!recording) return std::nullopt;
  const std::lock_guard<std::mutex> lock(state.capture_states_mutex_);
  const auto found = state.capture_states_.find(*recording);
  return found == state.capture_states_.end() ? 0 : found->second->offset_intragraph_;
}

/// While the same graph is recorded in which it was read.
inline void setOffsetInGraph(at::CUDAGeneratorState& state, uint64_t offset) {
  const std::optional<c10::CaptureId_t> recording = c10::cuda::currentStreamCaptureIdMayInitCtx();
  TORCH_CHECK(recording, "no CUDA graph is recorded");
  const std::lock_guard<std::mutex> lock(state.capture_states_mutex_);
  const auto found = state.capture_states_.find(*recording);
  if (found == state.capture_states_.end()) {
    TORCH_CHECK(offset == 0, "nothing has drawn random numbers in this CUDA graph");
    return;
  }
  found->second->offset_intragraph_ = offset;
}

/// Before a graph that draws from the default generator is recorded. `stateOf`: gives that
/// generator's state.
template <typename StateOf>
void registerDefaultGenerator(at::cuda::CUDAGraph& graph, StateOf stateOf) {
  graph.register_generator_state(stateOf());
}

/// Right after recording has begun. Asked for an offset, the generator makes its state for this
/// recording, with two tensors on the device: else the first op that draws numbers would, among the
/// allocations that the plan serves.
inline void prepareRandomNumbersInGraph() {
  at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  (void)generator.get<at::CUDAGeneratorImpl>()->philox_offset_per_thread();
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_CUDA_RNG_IN_GRAPH_H_
