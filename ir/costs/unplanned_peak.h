// SPDX-License-Identifier: Apache-2.0
//
// What a step needs when nothing is moved or recomputed: graph, costs and target in, bytes out.
// These are bytes that are alive at once; an arena that holds them all may take more.
#ifndef STOWAGE_IR_COSTS_UNPLANNED_PEAK_H_
#define STOWAGE_IR_COSTS_UNPLANNED_PEAK_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>

#include "ir/base/units.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"

namespace stowage::ir {

/// Bytes of the regions that libraries keep with a plan and without one, each rounded up.
Bytes sumReserved(llvm::ArrayRef<ReservedRegion> regions, int64_t alignBytes);

/// Includes temporaries (`costs` are those of the graph) and the target's reserved regions.
Bytes computeUnplannedPeak(const Graph& graph, const Target& target, const NodeCosts& costs);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_COSTS_UNPLANNED_PEAK_H_
