// SPDX-License-Identifier: Apache-2.0
//
// Where random numbers are while a CUDA graph is recorded, in torch 2.11.0: a generator's state
// knows one recording.
#ifndef STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_CUDA_RNG_IN_GRAPH_H_
#define STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_CUDA_RNG_IN_GRAPH_H_

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>

#include <cstdint>
#include <optional>

namespace stowage::runtime {

/// The offset counted from the graph's begin; none while nothing is recorded.
inline std::optional<uint64_t> offsetInGraph(const at::CUDAGeneratorState& state) {
  if (!state.capturing_) return std::nullopt;
  return state.offset_intragraph_;
}

/// While the same graph is recorded in which it was read.
inline void setOffsetInGraph(at::CUDAGeneratorState& state, uint64_t offset) {
  state.offset_intragraph_ = offset;
}

/// Before a graph that draws from the default generator is recorded. `stateOf`: gives that
/// generator's state, which this version does not need.
template <typename StateOf>
void registerDefaultGenerator(at::cuda::CUDAGraph& graph, StateOf /*stateOf*/) {
  graph.register_generator_state(at::cuda::detail::getDefaultCUDAGenerator());
}

/// Right after recording has begun: this version has made what it needs before.
inline void prepareRandomNumbersInGraph() {}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_CUDA_RNG_IN_GRAPH_H_
