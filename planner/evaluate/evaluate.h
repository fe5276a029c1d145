// SPDX-License-Identifier: Apache-2.0
//
// From decisions to a timetable, deterministically. Inserts recomputes, places copies on their
// engines (out from the last write on; in by deadline, as early as the prefetch limit allows),
// gives every residency an offset, and times the result exactly. The search evaluates candidates
// with it; `stowage lower` uses it after a hand edit.
#ifndef STOWAGE_PLANNER_EVALUATE_EVALUATE_H_
#define STOWAGE_PLANNER_EVALUATE_EVALUATE_H_

#include "ir/base/error.h"
#include "planner/problem/decisions.h"
#include "planner/problem/problem.h"
#include "planner/problem/timetable.h"

namespace stowage::planner {

/// `prefetchLimit`: device bytes that prefetches may fill. The result's devicePeak may exceed it
/// when the decisions free too little (the caller compares). Errors: kInvalidArgument for decisions
/// that are illegal (a row that names no gap, a recompute of something that is not recomputable,
/// ...), naming the storage and the reason.
ir::Expected<Timetable> evaluate(const Problem& problem, const Decisions& decisions,
                                 Bytes prefetchLimit);

/// The same for an arena of `budget` bytes: where addresses need more than the bytes do, prefetches
/// are held back until both fit. If nothing helps, the lowest timetable found; the caller compares.
/// `prefetchLimit` is tried first. A plan's own limit and decisions give the plan's own timetable.
ir::Expected<Timetable> evaluateWithin(const Problem& problem, const Decisions& decisions,
                                       Bytes budget, Bytes prefetchLimit);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_EVALUATE_H_
