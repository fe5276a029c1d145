// SPDX-License-Identifier: Apache-2.0
//
// What a run command reads and writes: one `in` residency per access that reads, one `out` per
// access that writes, in this order. A recompute of an op with a side-effect-free form (a batch
// norm without its running statistics) runs in that form and does not touch what the op changes in
// place. (ir/verify has its own account of this.)
#ifndef STOWAGE_RUNTIME_EXECUTOR_RUN_ACCESSES_H_
#define STOWAGE_RUNTIME_EXECUTOR_RUN_ACCESSES_H_

#include <llvm/ADT/SmallVector.h>

#include <vector>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::runtime {

/// Does this launch use its op's replay form?
bool runsInReplayForm(const ir::Graph& graph, const ir::Command& run);
llvm::SmallVector<ir::Access, 4> accessesOf(const ir::Graph& graph, const ir::Command& run);

/// Storages that a node makes, in order of its results: those that are no argument's. Without
/// storages of no bytes, which nobody allocates.
std::vector<ir::StorageId> freshResults(const ir::Graph& graph, ir::NodeId node);
/// Those of them that lie on the device: what is served there. A CUDA op may also make a few bytes
/// on the host (the seed of an attention's dropout).
std::vector<ir::StorageId> freshDeviceResults(const ir::Graph& graph, ir::NodeId node);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_RUN_ACCESSES_H_
