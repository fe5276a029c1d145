// SPDX-License-Identifier: Apache-2.0
//
// Independent work on the machine's cores. What is found must not depend on how many there are:
// each piece writes to a place of its own, and reads nothing that another one writes.
#ifndef STOWAGE_PLANNER_SEARCH_IN_PARALLEL_H_
#define STOWAGE_PLANNER_SEARCH_IN_PARALLEL_H_

#include <llvm/ADT/STLFunctionalExtras.h>

#include <cstddef>

namespace stowage::planner {

/// Pieces that are worth being under way at once: the cores of this process, but no more than 8,
/// for a container may own a part of what it sees. 1 at least.
size_t coreCount();

/// Calls `work` once with each of 0 to `count` - 1, on this thread and others, coreCount() at most;
/// back when all are done. Where no more threads can be had this one does what is left.
void inParallel(size_t count, llvm::function_ref<void(size_t)> work);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_IN_PARALLEL_H_
