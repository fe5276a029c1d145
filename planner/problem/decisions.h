// SPDX-License-Identifier: Apache-2.0
//
// What the planner chooses, and nothing else: an action per storage and gap. Small enough to read,
// edit and pin. Everything that follows from it (copies, recomputes, order, times, addresses) is
// made by `evaluate`, the same way for a plan that was searched and for one that a person edited.
#ifndef STOWAGE_PLANNER_PROBLEM_DECISIONS_H_
#define STOWAGE_PLANNER_PROBLEM_DECISIONS_H_

#include <vector>

#include "ir/schedule/schedule.h"

namespace stowage::planner {

struct Decisions {
  /// Ordered by storage, then gapBegin. Gaps without a row are kept. gapBegin/gapEnd are positions
  /// of consecutive accesses of the storage in the graph (ir/schedule/schedule.h, DecisionRow).
  std::vector<ir::DecisionRow> rows;
  friend bool operator==(const Decisions&, const Decisions&) = default;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_PROBLEM_DECISIONS_H_
