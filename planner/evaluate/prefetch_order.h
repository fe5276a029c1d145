// SPDX-License-Identifier: Apache-2.0
//
// Prefetches after the simulation that placed them as early as the bytes allow: how late each may
// start without being waited for, and when they run once some had to be put off because their place
// was not free. Times are those of the simulated period; wishes again, not proofs.
#ifndef STOWAGE_PLANNER_EVALUATE_PREFETCH_ORDER_H_
#define STOWAGE_PLANNER_EVALUATE_PREFETCH_ORDER_H_

#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/enqueue_order.h"

namespace stowage::planner {

/// Fills `copies.latest`.
void findLatestStarts(const GapTable& table, const Expansion& expansion, CopySchedule& copies);

/// An input is filled anew each step, so its copy is enqueued after the step boundary, and so are
/// prefetches that would run between that copy and the step boundary. Their places are free before,
/// so that they wait for nothing that the step before does in its end.
void enqueueInputsAfterBoundary(const Expansion& expansion, CopySchedule& copies);

/// `delays`: by live range, ticks of `order` (made from `copies`) by which its begin is put off.
/// Prefetches then start in order of their deadlines among those whose place is free. False:
/// nothing to do.
bool putOff(const GapTable& table, const Expansion& expansion, const EnqueueOrder& order,
            const std::vector<int64_t>& delays, CopySchedule& copies);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_PREFETCH_ORDER_H_
