// SPDX-License-Identifier: Apache-2.0
//
// Adjusts the prefetches that the simulation placed as early as the bytes allow: how late each may
// start without a stall, and when they run after some were delayed because their place was not
// free. Times are those of the simulated period: targets, not guarantees.
#ifndef STOWAGE_PLANNER_EVALUATE_PREFETCH_ORDER_H_
#define STOWAGE_PLANNER_EVALUATE_PREFETCH_ORDER_H_

#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/enqueue_order.h"

namespace stowage::planner {

/// Fills `copies.latest`.
void findLatestStarts(const GapTable& table, const Expansion& expansion, CopySchedule& copies);

/// An input changes each step, so its copy is enqueued after the step boundary. Prefetches that
/// would run between that copy and the boundary are also enqueued after it. Their places are free
/// earlier, so they need not wait for the last commands of the step before.
void enqueueInputsAfterBoundary(const Expansion& expansion, CopySchedule& copies);

/// `delays`: by live range, ticks of `order` (made from `copies`) by which its begin is put off.
/// Prefetches then start in order of their deadlines among those whose place is free. False:
/// nothing to do.
bool putOff(const GapTable& table, const Expansion& expansion, const EnqueueOrder& order,
            const std::vector<int64_t>& delays, CopySchedule& copies);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_PREFETCH_ORDER_H_
