// SPDX-License-Identifier: Apache-2.0
//
// Bytes on the device over one step, by what they hold: without a plan and with one. A picture for
// people; the peaks that are promised come from addresses (ir/verify/verify.h).
#ifndef STOWAGE_PLANNER_REPORT_MEMORY_HISTORY_H_
#define STOWAGE_PLANNER_REPORT_MEMORY_HISTORY_H_

#include <vector>

#include "ir/base/units.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "planner/report/explain_plan.h"
#include "planner/report/residency_spans.h"

namespace stowage::planner {

/// While one launch runs, and until the next begins.
struct MemoryPoint {
  Nanoseconds start;  // in the step
  GroupBytes bytes;
};

struct MemoryHistory {
  std::vector<MemoryPoint> points;  // by start, one per launch
  Nanoseconds stepTime;
  /// Most bytes at one point.
  Bytes peak() const;
};

/// Every storage is kept from its first write to its last access, and nodes run one after the
/// other. The peak is ir::computeUnplannedPeak.
MemoryHistory findUnplannedMemory(const ir::Graph& graph, const ir::Target& target,
                                  const ir::NodeCosts& costs);

/// In the steady state of the schedule, at the start of each launch.
MemoryHistory findPlannedMemory(const ExplainInput& input);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_REPORT_MEMORY_HISTORY_H_
