// SPDX-License-Identifier: Apache-2.0
//
// Indices grouped by the step at which they matter, as one array with offsets.
#ifndef STOWAGE_PLANNER_EVALUATE_BY_STEP_H_
#define STOWAGE_PLANNER_EVALUATE_BY_STEP_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stowage::planner {

class ByStep {
 public:
  /// `stepOf(i)` for i below `count`: a step, or a negative number for an index that matters at
  /// none.
  template <typename StepOf>
  ByStep(size_t steps, size_t count, StepOf stepOf) : first_(steps + 1, 0), items_() {
    std::vector<int64_t> place(count, -1);
    for (size_t i = 0; i < count; ++i) {
      place[i] = stepOf(i);
      if (place[i] >= 0) ++first_[static_cast<size_t>(place[i]) + 1];
    }
    for (size_t s = 0; s < steps; ++s) first_[s + 1] += first_[s];
    items_.resize(first_[steps]);
    std::vector<size_t> next(first_.begin(), first_.end() - 1);
    for (size_t i = 0; i < count; ++i) {
      if (place[i] >= 0) items_[next[static_cast<size_t>(place[i])]++] = static_cast<int32_t>(i);
    }
  }
  /// Ascending.
  llvm::ArrayRef<int32_t> at(int64_t step) const {
    const auto s = static_cast<size_t>(step);
    return llvm::ArrayRef<int32_t>(items_).slice(first_[s], first_[s + 1] - first_[s]);
  }

 private:
  std::vector<size_t> first_;
  std::vector<int32_t> items_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_BY_STEP_H_
