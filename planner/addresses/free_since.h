// SPDX-License-Identifier: Apache-2.0
//
// How early items may begin at the offsets they have: from the tick on at which no other item uses
// the bytes. In: items and offsets. Live ranges that share bytes are disjoint when every begin is
// put off as far as it may be. Out: the number of ticks by which each begin must be put off.
#ifndef STOWAGE_PLANNER_ADDRESSES_FREE_SINCE_H_
#define STOWAGE_PLANNER_ADDRESSES_FREE_SINCE_H_

#include <vector>

#include "planner/addresses/arena.h"

namespace stowage::planner {

std::vector<int64_t> findDelays(llvm::ArrayRef<ArenaItem> items,
                                const std::vector<int64_t>& offsets, int64_t period);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_ADDRESSES_FREE_SINCE_H_
