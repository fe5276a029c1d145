// SPDX-License-Identifier: Apache-2.0
//
// What compute waits for because one thread hands over one op after the other. That thread is ahead
// of the device by up to two steps, so it holds compute up only in steps whose ops take longer to
// hand over than to do, and there where it has fallen behind: in a stretch of small ops, less or
// not at all behind large ones. A CUDA graph is handed over in one go.
// A step's scalars are worked out beside it, from when it begins to be handed over; what updates is
// not handed over before they are there, which a step bound by issuing may have to wait for.
//
// In: work and issue of a graph's nodes. Out: waits, in steps that follow each other and do nothing
// but their nodes, which every schedule of the graph has at least. What copies and recomputes add
// to issuing, and that the thread gains on compute which waits for bytes:
// planner/evaluate/timing.h.
#ifndef STOWAGE_IR_COSTS_ISSUE_WAITS_H_
#define STOWAGE_IR_COSTS_ISSUE_WAITS_H_

#include <llvm/ADT/ArrayRef.h>

#include <vector>

#include "ir/base/units.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::ir {

struct IssueCosts {
  llvm::ArrayRef<OpCost> nodes;  // by node
  Nanoseconds scalars;           // CostTable::scalars
};

/// By node, before it begins. Ops of a graph are not issued: with kNoUpdate those before the first
/// that ends it, with kWhole all, though steps whose numbers change are recorded anew.
std::vector<Nanoseconds> findIssueWaits(const Graph& graph, const IssueCosts& costs,
                                        GraphMode mode);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_COSTS_ISSUE_WAITS_H_
