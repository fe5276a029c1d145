// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/graph/held_state.h"

#include <utility>
#include <vector>

namespace stowage::runtime {
namespace {

bool outlivesTheStep(const ir::Storage& storage) {
  return storage.persistent && storage.role != ir::Role::kGradient &&
         storage.role != ir::Role::kInput;
}

}  // namespace

ir::Graph holdStateBetweenSteps(ir::Graph graph) {
  ir::GraphBuilder builder(graph);
  std::vector<bool> touched(graph.storages().size(), false);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    ir::Node node = graph.nodes()[i];
    for (ir::Node::Write& write : node.writes) {
      const ir::StorageId storage = graph.value(write.value).storage;
      if (!touched[storage.index()] && outlivesTheStep(graph.storage(storage))) write.whole = false;
    }
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      touched[access.storage.index()] = true;
    }
    builder.addNode(std::move(node));
  }
  return std::move(builder).finish();
}

}  // namespace stowage::runtime
