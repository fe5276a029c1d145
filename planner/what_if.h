// SPDX-License-Identifier: Apache-2.0
//
// What a plan's step would take with more: the same planner asked again with faster links, more
// memory on the device, and no limit of the host. A large step is asked for the least time that the
// planner expects, which takes seconds in place of a plan; what that saves is an upper limit.
#ifndef STOWAGE_PLANNER_WHAT_IF_H_
#define STOWAGE_PLANNER_WHAT_IF_H_

#include <vector>

#include "planner/problem/problem.h"

namespace stowage::planner {

enum class Change : uint8_t {
  kAgain,      // nothing more: the plan was edited, or made under other rules
  kLink,       // both directions twice as fast
  kMemory,     // a tenth more on the device
  kHostMemory  // no limit of the host
};
const char* changeName(Change change);

struct WhatIf {
  Change change = Change::kAgain;
  BytesPerSecond rate{0};  // kLink: that the link to the device gains
  Bytes bytes;             // kMemory: that are added
  Nanoseconds saved;       // per step
  bool isAtMost = false;   // no plan was made
};

/// What saves more than a thousandth of the step. `problem`: of the plan's own graph, in which
/// `budget` and its limits gave `stepTime`, with waits of `ranksStall` for other ranks, which
/// nothing of this shortens. Errors: as Planner::make.
ir::Expected<std::vector<WhatIf>> askWhatIf(const Problem& problem, Bytes budget,
                                            Nanoseconds stepTime, Nanoseconds ranksStall = {});

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_WHAT_IF_H_
