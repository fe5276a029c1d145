// SPDX-License-Identifier: Apache-2.0
#include "ir/costs/launch_waits.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace stowage::ir {

namespace {

/// Until both clocks have found their pace. A thread that is a little faster gains a little in each
/// step.
constexpr int kMostSteps = 4096;

class LaunchClock {
 public:
  LaunchClock(const Graph& graph, const LaunchWaitInput& costs, GraphMode mode)
      : graph_(graph), costs_(costs), mode_(mode), waits_(costs.nodes.size()) {}

  std::vector<Nanoseconds> run() {
    const size_t update = findUpdate();
    const size_t firstOutsideGraph = mode_ == GraphMode::kNone       ? 0
                                     : mode_ == GraphMode::kNoUpdate ? update
                                                                     : costs_.nodes.size();
    // The thread is two steps ahead, so steps may take turns.
    std::vector<Nanoseconds> before;
    std::array<Lead, 2> known;
    for (size_t step = 0; step < kMostSteps; ++step) {
      before = waits_;
      takeStep(firstOutsideGraph, update);
      const Lead lead = {host_ - device_, device_ - before_};
      if (step > 1 && lead == known[step % 2]) break;
      known[step % 2] = lead;
    }
    for (size_t i = 0; i < waits_.size(); ++i) {
      waits_[i] = Nanoseconds((before[i].value() + waits_[i].value()) / 2);
    }
    return std::move(waits_);
  }

 private:
  /// All that the next step sees of those before it.
  using Lead = std::pair<int64_t, int64_t>;

  size_t findUpdate() const {
    size_t i = 0;
    while (i < costs_.nodes.size() && !endsGraph(graph_.node(NodeId(i)))) ++i;
    return i;
  }

  // The launch thread begins step s when step s - 2 is done. Nodes from `firstOutsideGraph` on are
  // not in a graph. `update` is the first node that needs the scalars at its launch.
  void takeStep(size_t firstOutsideGraph, size_t update) {
    host_ = std::max(host_, before_);
    before_ = device_;
    const int64_t scalars = host_ + costs_.scalars.value();
    if (update < firstOutsideGraph) host_ = scalars;  // the graph has them in it
    for (size_t i = 0; i < costs_.nodes.size(); ++i) {
      if (i == update) host_ = std::max(host_, scalars);
      if (i >= firstOutsideGraph) host_ += costs_.nodes[i].launch.value();
      const int64_t start = i >= firstOutsideGraph || i == 0 ? std::max(device_, host_) : device_;
      waits_[i] = Nanoseconds(start - device_);
      device_ = start + costs_.nodes[i].work.value();
    }
  }

  const Graph& graph_;
  const LaunchWaitInput& costs_;
  GraphMode mode_;
  std::vector<Nanoseconds> waits_;  // of the last step
  int64_t host_ = 0;                // when the launch thread is free
  int64_t device_ = 0;              // when compute is
  int64_t before_ = 0;              // when the step before the last one ended
};

}  // namespace

std::vector<Nanoseconds> findLaunchWaits(const Graph& graph, const LaunchWaitInput& costs,
                                         GraphMode mode) {
  return LaunchClock(graph, costs, mode).run();
}

}  // namespace stowage::ir
