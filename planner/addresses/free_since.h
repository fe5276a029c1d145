// SPDX-License-Identifier: Apache-2.0
//
// How early items may begin at the places they have: from when on nobody else uses the bytes.
// Begins that may be put off are asked for, all else is as given. In: items with offsets of
// lifetimes that are disjoint when every begin is put off as far as it may be. Out: by how many
// ticks each begin must be put off.
#ifndef STOWAGE_PLANNER_ADDRESSES_FREE_SINCE_H_
#define STOWAGE_PLANNER_ADDRESSES_FREE_SINCE_H_

#include <vector>

#include "planner/addresses/arena.h"

namespace stowage::planner {

std::vector<int64_t> findDelays(llvm::ArrayRef<ArenaItem> items,
                                const std::vector<int64_t>& offsets, int64_t period);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_ADDRESSES_FREE_SINCE_H_
