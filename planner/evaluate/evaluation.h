// SPDX-License-Identifier: Apache-2.0
//
// The evaluation that the search calls: from an action per gap to a timetable, without decision
// rows. planner/evaluate/evaluate.h does the same for decisions.
#ifndef STOWAGE_PLANNER_EVALUATE_EVALUATION_H_
#define STOWAGE_PLANNER_EVALUATE_EVALUATION_H_

#include "ir/base/error.h"
#include "planner/evaluate/address_plan.h"
#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/enqueue_order.h"
#include "planner/evaluate/expand.h"
#include "planner/problem/decisions.h"
#include "planner/problem/gaps.h"
#include "planner/problem/timetable.h"

namespace stowage::planner {

using Actions = std::vector<ir::GapAction>;  // by gap

/// An evaluation without addresses yet: the search drops most candidates at this point.
struct Draft {
  Expansion expansion;
  CopySchedule copies;
  EnqueueOrder order;
  DeviceItems device;

  /// Time of a step as simulated in bytes, a little more or less than the exact one; 0 if there are
  /// no copies.
  int64_t simulatedTime() const { return copies.length; }
};

/// `prefetchLimit`: bytes that prefetches may fill. Errors: as expand.
ir::Expected<Draft> draftTimetable(const GapTable& table, const Actions& actions,
                                   int64_t prefetchLimit);

/// Everything of a timetable but `decisions`, which are the rows that have an effect, without
/// reasons.
Timetable finishTimetable(const GapTable& table, const Actions& actions, int64_t prefetchLimit,
                          Draft draft);

/// Both. Errors: as expand.
ir::Expected<Timetable> evaluateActions(const GapTable& table, const Actions& actions,
                                        int64_t prefetchLimit);

/// The prefetch limit of the next attempt to fit `budget`, after one with `prefetchLimit` needed
/// `peak`. A limit above the budget becomes the budget. Any other is lowered by the excess, and by
/// a part of the budget at least.
int64_t lowerPrefetchLimit(int64_t prefetchLimit, int64_t budget, int64_t peak);

/// Errors: kInvalidArgument for a row that names no gap, and for a storage with rows of both host
/// and disk.
ir::Expected<Actions> actionsOf(const GapTable& table, const Decisions& decisions);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_EVALUATION_H_
