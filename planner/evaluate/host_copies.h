// SPDX-License-Identifier: Apache-2.0
//
// Which offloads an expansion needs, given its live ranges and prefetches. There is one per version
// that is prefetched and that the host does not hold yet. It copies from the live range before the
// prefetch, and may begin after that live range's last write. There is one more per output, and per
// storage that a node on the host reads. Storages that are never written (frozen parameters,
// constants), inputs, and what nodes on the host write need no offload: the host keeps them.
#ifndef STOWAGE_PLANNER_EVALUATE_HOST_COPIES_H_
#define STOWAGE_PLANNER_EVALUATE_HOST_COPIES_H_

#include "planner/evaluate/expand.h"

namespace stowage::planner {

/// Fills offloads, those of nodes on the host, hostAtBoundary, and release and source of every
/// prefetch.
void deriveHostCopies(const GapTable& table, Expansion& expansion);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_HOST_COPIES_H_
