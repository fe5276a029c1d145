// SPDX-License-Identifier: Apache-2.0
#include "ir/issue_waits.h"

#include <algorithm>
#include <cstdint>

namespace stowage::ir {

namespace {

/// Both clocks have found their pace by then: each step begins with the slower one.
constexpr int kSteps = 8;

class IssueClock {
 public:
  IssueClock(const Graph& graph, const IssueCosts& costs, GraphMode mode)
      : graph_(graph), costs_(costs), mode_(mode), waits_(costs.nodes.size()) {}

  std::vector<Nanoseconds> run() {
    const size_t update = findUpdate();
    const size_t issued = mode_ == GraphMode::kNone       ? 0
                          : mode_ == GraphMode::kNoUpdate ? update
                                                          : costs_.nodes.size();
    for (int step = 0; step < kSteps; ++step) takeStep(issued, update);
    return std::move(waits_);
  }

 private:
  size_t findUpdate() const {
    size_t i = 0;
    while (i < costs_.nodes.size() && !endsGraph(graph_.node(NodeId(i)))) ++i;
    return i;
  }

  // Step s is handed over when step s - 2 is done. Nodes from `issued` on are not in a graph;
  // `update` is the first that is not handed over before the scalars are there.
  void takeStep(size_t issued, size_t update) {
    host_ = std::max(host_, before_);
    before_ = device_;
    const int64_t scalars = host_ + costs_.scalars.value();
    if (update < issued) host_ = scalars;  // the graph has them in it
    for (size_t i = 0; i < costs_.nodes.size(); ++i) {
      if (i == update) host_ = std::max(host_, scalars);
      if (i >= issued) host_ += costs_.nodes[i].issue.value();
      const int64_t start = i >= issued || i == 0 ? std::max(device_, host_) : device_;
      waits_[i] = Nanoseconds(start - device_);
      device_ = start + costs_.nodes[i].time.value();
    }
  }

  const Graph& graph_;
  const IssueCosts& costs_;
  GraphMode mode_;
  std::vector<Nanoseconds> waits_;  // of the last step
  int64_t host_ = 0;                // when the issuing thread is free
  int64_t device_ = 0;              // when compute is
  int64_t before_ = 0;              // when the step before the last one ended
};

}  // namespace

std::vector<Nanoseconds> findIssueWaits(const Graph& graph, const IssueCosts& costs,
                                        GraphMode mode) {
  return IssueClock(graph, costs, mode).run();
}

}  // namespace stowage::ir
