// SPDX-License-Identifier: Apache-2.0
//
// Indices grouped by the launch at which they matter, as one array with offsets.
#ifndef STOWAGE_PLANNER_EVALUATE_BY_LAUNCH_H_
#define STOWAGE_PLANNER_EVALUATE_BY_LAUNCH_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stowage::planner {

class ByLaunch {
 public:
  /// `launchOf(i)` for i below `count`: a launch, or a negative number for an index that matters at
  /// none.
  template <typename LaunchOf>
  ByLaunch(size_t launches, size_t count, LaunchOf launchOf) : first_(launches + 1, 0), items_() {
    std::vector<int64_t> place(count, -1);
    for (size_t i = 0; i < count; ++i) {
      place[i] = launchOf(i);
      if (place[i] >= 0) ++first_[static_cast<size_t>(place[i]) + 1];
    }
    for (size_t i = 0; i < launches; ++i) first_[i + 1] += first_[i];
    items_.resize(first_[launches]);
    std::vector<size_t> next(first_.begin(), first_.end() - 1);
    for (size_t i = 0; i < count; ++i) {
      if (place[i] >= 0) items_[next[static_cast<size_t>(place[i])]++] = static_cast<int32_t>(i);
    }
  }
  /// Ascending.
  llvm::ArrayRef<int32_t> at(int64_t launch) const {
    const auto index = static_cast<size_t>(launch);
    return llvm::ArrayRef<int32_t>(items_).slice(first_[index], first_[index + 1] - first_[index]);
  }

 private:
  std::vector<size_t> first_;
  std::vector<int32_t> items_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_BY_LAUNCH_H_
