// SPDX-License-Identifier: Apache-2.0
#include "planner/search/shrink_to_fit.h"

#include <algorithm>
#include <utility>

namespace stowage::planner {

namespace {

class Shrinker {
 public:
  Shrinker(const GapTable& table, const KnownPlan& plan, int evaluations)
      : table_(table), plan_(plan), left_(evaluations) {}

  // Steps that are halved when they do not do.
  std::vector<KnownPlan> run() {
    const std::vector<int64_t> loads = computeNodeLoads(table_, plan_.actions);
    if (loads.empty()) return {};
    const int64_t least = *std::max_element(loads.begin(), loads.end());
    const int64_t align = table_.problem().target.alignBytes;
    int64_t height = plan_.height;
    int64_t step = (height - least) / align;
    while (step > 0 && left_ > 0) {
      std::optional<KnownPlan> lower = fit(height - step * align);
      if (!lower) {
        step /= 2;
        continue;
      }
      height = lower->height;
      step = std::min(step, (height - least) / align);
      if (lower->time >= plan_.time) found_.push_back(std::move(*lower));
    }
    return std::move(found_);
  }

 private:
  // The allowance of the plan itself may do: less room changes when what is prefetched.
  std::optional<KnownPlan> fit(int64_t height) {
    int64_t allowance = std::max(height, plan_.prefetch);
    for (; allowance > 0 && left_ > 0; --left_) {
      Tried tried = tryActions(table_, plan_.actions, allowance, {.height = height});
      if (tried.plan && tried.plan->height <= height) return std::move(tried.plan);
      allowance = lowerAllowance(allowance, height, tried.height);
    }
    return std::nullopt;
  }

  const GapTable& table_;
  const KnownPlan& plan_;
  int left_;  // evaluations
  std::vector<KnownPlan> found_;
};

}  // namespace

std::vector<KnownPlan> shrinkToFit(const GapTable& table, const KnownPlan& plan, int evaluations) {
  return Shrinker(table, plan, evaluations).run();
}

}  // namespace stowage::planner
