// SPDX-License-Identifier: Apache-2.0
//
// The simplest schedule there is, written without the planner and the passes: every storage has a
// place of its own for ever, inputs are copied in, outputs are offloaded, the order is the
// graph's. For tests of what executes schedules. Level kSynced, identities set.
#ifndef STOWAGE_TESTS_SUPPORT_KEEP_ALL_SCHEDULE_H_
#define STOWAGE_TESTS_SUPPORT_KEEP_ALL_SCHEDULE_H_

#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::tests {

/// `costs` may be null: then no launch has a temp region.
ir::Schedule makeKeepAllSchedule(const ir::Graph& graph, const ir::Target& target,
                                 const ir::NodeCosts* costs = nullptr);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_KEEP_ALL_SCHEDULE_H_
