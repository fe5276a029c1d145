// SPDX-License-Identifier: Apache-2.0
//
// Where several ranks share a step, the order of its launches that gives collectives time beside
// compute: gathers before their readers, by as much as the link needs, as far as there is room;
// means and the optimizer's nodes not before what they wait for has come from the other ranks. Each
// storage keeps the order of its accesses, so each result keeps its bits. All ranks run one plan,
// so the order of collectives is the same on all.
#ifndef STOWAGE_PLANNER_EVALUATE_LAUNCH_ORDER_H_
#define STOWAGE_PLANNER_EVALUATE_LAUNCH_ORDER_H_

#include <cstdint>
#include <vector>

#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/expand.h"
#include "planner/problem/gaps.h"

namespace stowage::planner {

/// `inOrder`: the expansion in the graph's order. `limit`: bytes of the device, reserved regions
/// not counted, that gathers may fill early.
LaunchOrder orderAroundCollectives(const GapTable& table, const Expansion& inOrder, int64_t limit);

/// By launch: when a collective is over, at most the end of the step, as a position on the compute
/// stream; of any other launch its own end. `starts`: of launches, since the step's begin; empty:
/// each ends where its own does.
std::vector<ComputePosition> findLaunchEnds(const GapTable& table, const Expansion& expansion,
                                            const std::vector<int64_t>& starts);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_LAUNCH_ORDER_H_
