// SPDX-License-Identifier: Apache-2.0
//
// From decisions to a timetable, deterministically: expands recomputes into clones, places copies
// on their engines (out from the last write on; in by deadline, as early as the budget allows),
// gives every residency an offset, and times the result exactly. The only judge the search has, and
// what `stowage lower` uses after a hand edit.
#ifndef STOWAGE_PLANNER_EVALUATE_EVALUATE_H_
#define STOWAGE_PLANNER_EVALUATE_EVALUATE_H_

#include "ir/base/error.h"
#include "planner/problem/decisions.h"
#include "planner/problem/problem.h"
#include "planner/problem/timetable.h"

namespace stowage::planner {

/// `budget`: device bytes that prefetches may use up; the result's deviceHeight may still exceed it
/// when the decisions free too little (the caller compares). Errors: kInvalidArgument for decisions
/// that are illegal (a row that names no gap, a recompute of something that may not run again,
/// ...), naming the storage and the reason.
ir::Expected<Timetable> evaluate(const Problem& problem, const Decisions& decisions, Bytes budget);

/// The same for an arena of `budget` bytes: where addresses need more than the bytes do, prefetches
/// are held back until both fit. If nothing helps, the lowest timetable found; the caller compares.
/// `prefetch` is tried first; with that of a plan, its own decisions give its own timetable.
ir::Expected<Timetable> evaluateWithin(const Problem& problem, const Decisions& decisions,
                                       Bytes budget, Bytes prefetch);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_EVALUATE_H_
