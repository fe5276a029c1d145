// SPDX-License-Identifier: Apache-2.0
//
// Launch waits: how long compute waits because one CPU thread launches all ops.
//
// Where launch overhead is modelled:
//   measured  of ops: runtime/calibrate/op_measurement.cpp, of copies: runtime/cuda/link_bench.cpp,
//             of both inside steps: planner/correct/launch_times.cpp
//   applied   to a graph's nodes: this file, to a plan: planner/evaluate/timing.cpp
//   printed   tools/verbs/profile_verb.cpp, tools/verbs/explain_verb.cpp, tools/run/run_output.cpp
//
// The launch thread is up to two steps ahead of the device. Compute waits for it only in
// launch-bound steps, whose launch overhead exceeds their work, and only where the thread has
// fallen behind: in a stretch of small ops, less or not at all after large ones. A CUDA graph is
// launched in one go.
// A second thread computes a step's scalars, from when the launch thread begins the step. Updates
// are not launched before the scalars are there; a launch-bound step may wait for them.
//
// In: work and launch overhead of a graph's nodes. Out: waits in consecutive steps of these nodes
// alone. Every schedule of the graph has at least these nodes. planner/evaluate/timing.h models the
// launch overhead of copies and recomputes, and the lead that the thread gains while compute waits
// for bytes.
#ifndef STOWAGE_IR_COSTS_LAUNCH_WAITS_H_
#define STOWAGE_IR_COSTS_LAUNCH_WAITS_H_

#include <llvm/ADT/ArrayRef.h>

#include <vector>

#include "ir/base/units.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::ir {

struct LaunchWaitInput {
  llvm::ArrayRef<OpCost> nodes;  // by node
  Nanoseconds scalars;           // CostTable::scalars
};

/// By node, before it begins. Nodes inside a CUDA graph have no launch overhead: with kNoUpdate
/// those before the first node that ends the graph, with kWhole all. That kWhole records a step
/// again when its scalars change is not counted.
std::vector<Nanoseconds> findLaunchWaits(const Graph& graph, const LaunchWaitInput& costs,
                                         GraphMode mode);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_COSTS_LAUNCH_WAITS_H_
