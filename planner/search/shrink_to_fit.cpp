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

  // Tries to save many bytes at once; halves the number when that fails.
  std::vector<KnownPlan> run() {
    const std::vector<int64_t> loads = computeNodeLoads(table_, plan_.actions);
    if (loads.empty()) return {};
    const int64_t least = *std::max_element(loads.begin(), loads.end());
    const int64_t align = table_.problem().target.alignBytes;
    int64_t peak = plan_.peak;
    int64_t units = (peak - least) / align;
    while (units > 0 && left_ > 0) {
      std::optional<KnownPlan> lower = fit(peak - units * align);
      if (!lower) {
        units /= 2;
        continue;
      }
      peak = lower->peak;
      units = std::min(units, (peak - least) / align);
      if (lower->time >= plan_.time) found_.push_back(std::move(*lower));
    }
    return std::move(found_);
  }

 private:
  // The plan's own prefetch limit comes first: a lower one changes when prefetches start.
  std::optional<KnownPlan> fit(int64_t peak) {
    int64_t prefetchLimit = std::max(peak, plan_.prefetchLimit);
    for (; prefetchLimit > 0 && left_ > 0; --left_) {
      Tried tried = tryActions(table_, plan_.actions, prefetchLimit, {.peak = peak});
      if (tried.plan && tried.plan->peak <= peak) return std::move(tried.plan);
      prefetchLimit = lowerPrefetchLimit(prefetchLimit, peak, tried.peak);
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
