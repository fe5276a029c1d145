// SPDX-License-Identifier: Apache-2.0
//
// When the bytes of a residency are nobody's any more, so that the fake device can poison them.
// A residency's accesses in a step fall into stays: each begins with a command that writes it
// without needing what was there (a copy into it, a first or whole write). A residency of the
// boundary has one stay that spans the step boundary: it begins late in one step and ends early in
// the next; if nothing in the step begins a stay, it is never freed.
#ifndef STOWAGE_RUNTIME_FAKE_FREED_RANGES_H_
#define STOWAGE_RUNTIME_FAKE_FREED_RANGES_H_

#include <map>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::runtime {

class FreedStays {
 public:
  FreedStays(const ir::Graph& graph, const ir::Schedule& schedule);
  /// The command of step `step` is over: residencies whose stay it was the last to touch.
  std::vector<ir::ResidencyId> finish(ir::CommandId command, int64_t step);

 private:
  struct Stay {
    ir::ResidencyId residency;
    int touches = 0;      // of one whole stay
    bool isFreed = true;  // false: lives for ever, or its end is not known from commands
  };
  struct Touch {
    size_t stay = 0;
    bool begunBefore = false;  // the stay began in the step before
  };
  void addResidency(ir::ResidencyId residency, const std::vector<std::pair<size_t, bool>>& uses,
                    bool atBoundary, bool isDelivered);

  std::vector<Stay> stays_;
  std::vector<std::vector<Touch>> touches_;         // by command
  std::map<std::pair<size_t, int64_t>, int> left_;  // (stay, step it began in): touches to come
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FAKE_FREED_RANGES_H_
