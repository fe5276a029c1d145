// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_accesses.h"

#include <algorithm>

#include "ir/op_table.h"

namespace stowage::runtime {

bool runsInReplayForm(const ir::Graph& graph, const ir::Command& run) {
  return run.clone > 0 && *ir::lookUpOp(graph.node(run.node).op).replayForm != '\0';
}

llvm::SmallVector<ir::Access, 4> accessesOf(const ir::Graph& graph, const ir::Command& run) {
  const ir::Node& node = graph.node(run.node);
  const bool skipsWrites = runsInReplayForm(graph, run);
  const auto isChanged = [&](ir::StorageId storage) {
    return std::any_of(node.writes.begin(), node.writes.end(), [&](const ir::Node::Write& write) {
      return graph.value(write.value).storage == storage;
    });
  };
  llvm::SmallVector<ir::Access, 4> accesses;
  for (const ir::Access& access : graph.accesses(run.node)) {
    if (!skipsWrites || !isChanged(access.storage)) accesses.push_back(access);
  }
  return accesses;
}

}  // namespace stowage::runtime
