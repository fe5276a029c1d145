// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/run_accesses.h"

#include <algorithm>

#include "ir/graph/op_table.h"

namespace stowage::runtime {

bool runsInReplayForm(const ir::Graph& graph, const ir::Command& run) {
  return run.recompute > 0 && *ir::lookUpOp(graph.node(run.node).op).replayForm != '\0';
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

std::vector<ir::StorageId> freshResults(const ir::Graph& graph, ir::NodeId node) {
  std::vector<ir::StorageId> known;
  ir::forEachTensorArgument(
      graph.node(node), [&](ir::ValueId value) { known.push_back(graph.value(value).storage); });
  std::vector<ir::StorageId> fresh;
  for (const ir::ValueId value : graph.node(node).results) {
    if (!value.isValid()) continue;
    const ir::StorageId storage = graph.value(value).storage;
    if (std::find(known.begin(), known.end(), storage) != known.end()) continue;
    known.push_back(storage);
    if (graph.storage(storage).bytes.value() > 0) fresh.push_back(storage);
  }
  return fresh;
}

std::vector<ir::StorageId> freshDeviceResults(const ir::Graph& graph, ir::NodeId node) {
  std::vector<ir::StorageId> fresh = freshResults(graph, node);
  fresh.erase(std::remove_if(fresh.begin(), fresh.end(),
                             [&](ir::StorageId storage) {
                               return graph.storage(storage).home == ir::Space::kHost;
                             }),
              fresh.end());
  return fresh;
}

}  // namespace stowage::runtime
