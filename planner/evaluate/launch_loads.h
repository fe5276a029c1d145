// SPDX-License-Identifier: Apache-2.0
//
// How many bytes of the device an expansion needs, launch by launch.
#ifndef STOWAGE_PLANNER_EVALUATE_LAUNCH_LOADS_H_
#define STOWAGE_PLANNER_EVALUATE_LAUNCH_LOADS_H_

#include <cstdint>
#include <vector>

#include "planner/evaluate/expand.h"

namespace stowage::planner {

/// Bytes at each launch when prefetched bytes arrive at their deadline and leave after their last
/// use.
std::vector<int64_t> computeLoads(const GapTable& table, const Expansion& expansion);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_LAUNCH_LOADS_H_
