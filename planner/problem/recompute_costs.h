// SPDX-License-Identifier: Apache-2.0
//
// The cost of recomputing a storage at the end of a gap: its own writers, and for each input that
// is dead by then either its bytes kept until then or its writers too.
// Chains are followed to their ends, so the cost is exact unless inputs are dropped for other
// reasons.
#ifndef STOWAGE_PLANNER_PROBLEM_RECOMPUTE_COSTS_H_
#define STOWAGE_PLANNER_PROBLEM_RECOMPUTE_COSTS_H_

#include <llvm/ADT/SmallVector.h>

#include <optional>

#include "planner/problem/gaps.h"

namespace stowage::planner {

struct RecomputeCost {
  Nanoseconds time;
  Bytes bytes;  // freed on balance: the storage's less those of inputs that stay for it
  llvm::SmallVector<size_t, 2> extended;  // gaps of dead inputs that are kept for it
  llvm::SmallVector<size_t, 4> open;      // gaps in which live inputs are then: they must be back
};

/// For a recompute at node position `at`, within the gap or at its end. Nothing if some version
/// that is needed is gone by then, or nothing is gained.
std::optional<RecomputeCost> findRecomputeCost(const GapTable& table, size_t gap, int64_t at);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_PROBLEM_RECOMPUTE_COSTS_H_
