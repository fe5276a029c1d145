// SPDX-License-Identifier: Apache-2.0
//
// Where compute waits in a timetable, and for what: bytes that leave, bytes that arrive, a disk,
// other ranks.
#ifndef STOWAGE_PLANNER_EVALUATE_STALLS_H_
#define STOWAGE_PLANNER_EVALUATE_STALLS_H_

#include <llvm/ADT/ArrayRef.h>

#include <vector>

#include "planner/evaluate/dependencies.h"
#include "planner/problem/timetable.h"

namespace stowage::planner {

/// What a timetable does not say of its actions.
struct WaitsOfActions {
  const Dependencies& dependencies;
  llvm::ArrayRef<size_t> meetings;       // actions before which all streams meet
  llvm::ArrayRef<Nanoseconds> enqueued;  // by action; empty: without launch overhead
};

/// Sets `stalls` and `stallsAt` from the actions' times. By action: compute waited for its end.
std::vector<bool> attributeStalls(const WaitsOfActions& waits, Timetable& timetable);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_STALLS_H_
