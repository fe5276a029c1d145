// SPDX-License-Identifier: Apache-2.0
//
// Which copies to the host an expansion needs, given its stays and fetches: one per version that
// is fetched and that the host does not hold yet, taken from the stay before the fetch, possible
// from that stay's last write on; and one per output. What is never written (frozen parameters,
// constants) and what arrives on the host (inputs) needs none: the host keeps it.
#ifndef STOWAGE_PLANNER_HOST_COPIES_H_
#define STOWAGE_PLANNER_HOST_COPIES_H_

#include "planner/expand.h"

namespace stowage::planner {

/// Fills copiesOut, hostAtSeam, and release and source of every fetch.
void deriveHostCopies(const GapTable& table, Expansion& expansion);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_HOST_COPIES_H_
