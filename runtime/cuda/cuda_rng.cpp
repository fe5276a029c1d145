// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_rng.h"

#include <ATen/cuda/CUDAGeneratorImpl.h>

#include <cstdint>
#include <mutex>

#include "this_torch/cuda_rng_in_graph.h"

namespace stowage::runtime {

namespace {

/// The default generator's own state is out of reach; this one takes its place, with the same
/// numbers to come.
const c10::intrusive_ptr<at::CUDAGeneratorState>& sharedStatePointer() {
  static const c10::intrusive_ptr<at::CUDAGeneratorState> kState = [] {
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    auto* own = generator.get<at::CUDAGeneratorImpl>();
    auto made = c10::make_intrusive<at::CUDAGeneratorState>(own->current_seed(),
                                                            own->philox_offset_per_thread());
    own->graphsafe_set_state(
        c10::make_intrusive<at::CUDAGeneratorImpl>(generator.device().index(), made));
    return made;
  }();
  return kState;
}

at::CUDAGeneratorState& sharedState() { return *sharedStatePointer(); }

/// How far an op moves the offset differs by op and is never computed, only read.
struct CudaRngState {
  uint64_t seed = 0;
  uint64_t offset = 0;
  bool isInGraph = false;  // then the offset counts from the graph's begin

  static CudaRngState take() {
    if (const auto inGraph = offsetInGraph(sharedState())) return {0, *inGraph, true};
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    auto* own = generator.get<at::CUDAGeneratorImpl>();
    return {own->current_seed(), own->philox_offset_per_thread(), false};
  }
  void put() const {
    if (isInGraph) {
      setOffsetInGraph(sharedState(), offset);
      return;
    }
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    auto* own = generator.get<at::CUDAGeneratorImpl>();
    own->set_current_seed(seed);  // sets the offset to 0
    own->set_philox_offset_per_thread(offset);
  }
};

}  // namespace

void registerRandomNumbers(at::cuda::CUDAGraph& graph) {
  registerDefaultGenerator(graph, sharedStatePointer);
}

std::unique_ptr<RngKeeper> makeCudaRngKeeper() {
  return std::make_unique<SlottedRngKeeper<CudaRngState>>();
}

}  // namespace stowage::runtime
