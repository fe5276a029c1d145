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
  IssueClock(const Graph& graph, llvm::ArrayRef<OpCost> costs, GraphMode mode)
      : graph_(graph), costs_(costs), mode_(mode), waits_(costs.size()) {}

  std::vector<Nanoseconds> run() {
    for (int step = 0; step < kSteps; ++step) takeStep();
    return std::move(waits_);
  }

 private:
  // Step s is handed over when step s - 2 is done.
  void takeStep() {
    host_ = std::max(host_, before_);
    before_ = device_;
    bool isIssued = mode_ == GraphMode::kNone;
    for (size_t i = 0; i < costs_.size(); ++i) {
      isIssued |= mode_ == GraphMode::kNoUpdate && endsGraph(graph_.node(NodeId(i)));
      if (isIssued) host_ += costs_[i].issue.value();
      const int64_t start = isIssued || i == 0 ? std::max(device_, host_) : device_;
      waits_[i] = Nanoseconds(start - device_);
      device_ = start + costs_[i].time.value();
    }
  }

  const Graph& graph_;
  llvm::ArrayRef<OpCost> costs_;
  GraphMode mode_;
  std::vector<Nanoseconds> waits_;  // of the last step
  int64_t host_ = 0;                // when the issuing thread is free
  int64_t device_ = 0;              // when compute is
  int64_t before_ = 0;              // when the step before the last one ended
};

}  // namespace

std::vector<Nanoseconds> findIssueWaits(const Graph& graph, llvm::ArrayRef<OpCost> costs,
                                        GraphMode mode) {
  return IssueClock(graph, costs, mode).run();
}

}  // namespace stowage::ir
