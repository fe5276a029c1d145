// SPDX-License-Identifier: Apache-2.0
//
// Which command must be finished before which other starts, for given residencies and offsets: data
// (a copy or launch reads what another wrote), reuse (bytes of a dead residency or temp region are
// written again), across the step boundary too. Used by `evaluate` for exact times and by the
// pass that writes waits. Not used by the verifier, which proves the result with its own account.
#ifndef STOWAGE_PLANNER_EVALUATE_DEPENDENCIES_H_
#define STOWAGE_PLANNER_EVALUATE_DEPENDENCIES_H_

#include <llvm/ADT/ArrayRef.h>

#include <vector>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::planner {

struct Dependencies {
  /// Per command: commands of this step that must be finished before it starts; ascending;
  /// same-stream predecessors (implied by the stream's order) left out.
  std::vector<std::vector<ir::CommandId>> wait;
  /// The same for commands of the step before.
  std::vector<std::vector<ir::CommandId>> prev;
};

/// Sizes: residencies and commands as in a schedule; offsets must be set. Cost: O(commands * log +
/// overlaps).
Dependencies computeDependencies(const ir::Graph& graph, const ir::Target& target,
                                 llvm::ArrayRef<ir::Residency> residencies,
                                 llvm::ArrayRef<ir::BoundaryEntry> boundary,
                                 llvm::ArrayRef<ir::Command> commands);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_DEPENDENCIES_H_
