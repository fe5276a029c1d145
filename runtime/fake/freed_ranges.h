// SPDX-License-Identifier: Apache-2.0
//
// When the live ranges of residencies end, so that the fake device can poison their bytes.
// A residency's accesses in a step fall into live ranges. Each begins with a command that writes it
// without reading it (a copy into it, a first or whole write). A residency of the boundary has one
// live range that crosses the step boundary: it begins late in one step and ends early in the next.
// If no command of the step begins a live range, the residency is never freed.
#ifndef STOWAGE_RUNTIME_FAKE_FREED_RANGES_H_
#define STOWAGE_RUNTIME_FAKE_FREED_RANGES_H_

#include <map>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::runtime {

class FreedRanges {
 public:
  FreedRanges(const ir::Graph& graph, const ir::Schedule& schedule);
  /// The command of step `step` is over: residencies whose live range it was the last to access.
  std::vector<ir::ResidencyId> finish(ir::CommandId command, int64_t step);

 private:
  struct LiveRange {
    ir::ResidencyId residency;
    int touches = 0;      // of the whole live range
    bool isFreed = true;  // false: lives for ever, or its end is not known from commands
  };
  struct Touch {
    size_t range = 0;
    bool begunBefore = false;  // the live range began in the step before
  };
  void addResidency(ir::ResidencyId residency, const std::vector<std::pair<size_t, bool>>& uses,
                    bool atBoundary, bool isDelivered);

  std::vector<LiveRange> ranges_;
  std::vector<std::vector<Touch>> touches_;         // by command
  std::map<std::pair<size_t, int64_t>, int> left_;  // (live range, step of its begin): touches left
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FAKE_FREED_RANGES_H_
