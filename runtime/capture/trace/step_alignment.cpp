// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/trace/step_alignment.h"

#include "runtime/capture/trace/step_matcher.h"

namespace stowage::runtime {

/// Greedy: the first step is a later step with calls put in, so the next node that matches is it.
StepAlignment alignFirstStep(const StepTrace& first, const StepTrace& later,
                             const StorageTable& storages) {
  const StoragePairs none;
  StepMatcher matcher(wholeStep(first, "the first step"), wholeStep(later, "a later step"),
                      storages, none);
  matcher.acceptFirstMomentum();
  StepAlignment alignment;
  size_t next = 0;
  for (size_t k = 0; k < later.nodes.size(); ++k) {
    size_t candidate = next;
    while (candidate < first.nodes.size() && !matcher.differenceBetween(candidate, k).empty()) {
      ++candidate;
    }
    if (candidate == first.nodes.size()) {
      alignment.firstOf.push_back(-1);
      continue;
    }
    for (; next < candidate; ++next) alignment.onlyFirst.push_back(static_cast<uint32_t>(next));
    alignment.firstOf.push_back(static_cast<int32_t>(next++));
  }
  for (; next < first.nodes.size(); ++next) {
    alignment.onlyFirst.push_back(static_cast<uint32_t>(next));
  }
  return alignment;
}

}  // namespace stowage::runtime
