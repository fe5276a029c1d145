// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/host_state.h"

#include <utility>

namespace stowage::runtime {

ir::Error checkHostState(const ir::Graph& graph) {
  ir::PlanError refused(ir::ErrorCode::kUnsupported,
                        "the step writes state that lives on the host, expected what a CUDA step "
                        "writes on the GPU: move it there before the step is captured or exported");
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      const ir::Storage& storage = graph.storage(access.storage);
      const bool isHostState = storage.persistent && storage.home == ir::Space::kHost;
      if (!isHostState || !access.writes()) continue;
      refused.note("node " + graph.describeNode(ir::NodeId(i)) + " writes '" + storage.name + "'");
    }
  }
  return refused.notes().empty() ? ir::success() : ir::makeError(std::move(refused));
}

}  // namespace stowage::runtime
