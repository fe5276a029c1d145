// SPDX-License-Identifier: Apache-2.0
//
// Which copies to the host an expansion needs, given its stays and prefetches: one per version that
// is prefetched and that the host does not hold yet, taken from the stay before the prefetch,
// possible from that stay's last write on; and one per output. What is never written (frozen
// parameters, constants) and what arrives on the host (inputs) needs none: the host keeps it.
#ifndef STOWAGE_PLANNER_EVALUATE_HOST_COPIES_H_
#define STOWAGE_PLANNER_EVALUATE_HOST_COPIES_H_

#include "planner/evaluate/expand.h"

namespace stowage::planner {

/// Fills offloads, hostAtBoundary, and release and source of every prefetch.
void deriveHostCopies(const GapTable& table, Expansion& expansion);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_HOST_COPIES_H_
