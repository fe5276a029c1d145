// SPDX-License-Identifier: Apache-2.0
//
// The costs of a step in row blocks or with updates on the host. `profile` measures row blocks, but
// a table that was measured before, or given, knows the whole ops only. Such an op takes its share
// of rows of the whole op's time, and a kernel's overhead, and its share of the temporaries. On the
// host, which on a CPU target is the processor that was measured, an op takes the time measured
// there. Where the table has no such op, the roofline's estimate.
#ifndef STOWAGE_PLANNER_TARGETS_ARRANGED_COSTS_H_
#define STOWAGE_PLANNER_TARGETS_ARRANGED_COSTS_H_

#include <cstdint>

#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"

namespace stowage::planner {

struct ArrangedCosts {
  ir::CostTable table;    // a row for each signature of the graph, and no others
  int64_t estimated = 0;  // rows that the given table does not have
};
/// Equal input gives equal rows, so that a plan's reader has the same costs as its maker. An
/// estimate (CostSource::kRoofline) of the step gives the estimate of the arranged one.
ArrangedCosts findArrangedCosts(const ir::Graph& graph, const ir::Target& target,
                                const ir::CostTable& table);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_TARGETS_ARRANGED_COSTS_H_
