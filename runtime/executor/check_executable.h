// SPDX-License-Identifier: Apache-2.0
//
// What a schedule must keep so that executing it cannot leave the arenas, index out of range or
// wait for ever, whatever else is wrong with it: ids in range, operands that fit the node's
// accesses, offsets set, aligned and inside the arenas, waits that point backwards, kinds on the
// streams that run them. A few comparisons per command, done before any plan is loaded. It does not
// prove that the schedule is right: that is ir/verify/verify.h.
#ifndef STOWAGE_RUNTIME_EXECUTOR_CHECK_EXECUTABLE_H_
#define STOWAGE_RUNTIME_EXECUTOR_CHECK_EXECUTABLE_H_

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::runtime {

/// Errors: kPlanMismatch for another graph or target; kInvalidIr with a note per finding.
ir::Error checkExecutable(const ir::Graph& graph, const ir::Schedule& schedule,
                          const ir::Target& target);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_CHECK_EXECUTABLE_H_
