// SPDX-License-Identifier: Apache-2.0
//
// Which write made the bytes that a gap could send to the host: an offload may start right after
// it, long before the gap.
#ifndef STOWAGE_PLANNER_PROBLEM_LAST_WRITES_H_
#define STOWAGE_PLANNER_PROBLEM_LAST_WRITES_H_

#include <cstdint>
#include <vector>

#include "planner/problem/gaps.h"

namespace stowage::planner {

struct LastWrite {
  int64_t version = -1;  // index of the gap after the write; -1: nobody writes, the host has it
  int64_t before = 0;    // positions between the write and the begin of the gap
};

/// By gap. The write may be of the step before.
std::vector<LastWrite> findLastWrites(const GapTable& table);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_PROBLEM_LAST_WRITES_H_
