// SPDX-License-Identifier: Apache-2.0
//
// Updates that run on the host (Node::onHost), on operands in host memory: gradients come there,
// states stay there, new parameters go back to the device before the next step reads them.
// What makes that possible, by versions and not by names:
//   - The node is the optimizer's, draws nothing, and makes no storage: it changes what there is.
//   - What persists and a node on the host writes, only nodes on the host write. So the host always
//     has the newest bytes of it. What the step makes for itself is copied to the host once.
//     After the first write there, no node on the device uses either in this step.
//   - What it reads besides, the step never writes, or has written for the last time. Host memory
//     that changes and that an op of a GPU uses is not among it: such an op reads and writes it
//     when it is launched, not when it runs.
#ifndef STOWAGE_IR_GRAPH_HOST_UPDATES_H_
#define STOWAGE_IR_GRAPH_HOST_UPDATES_H_

#include <string>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"

namespace stowage::ir {

/// What stands against running the nodes marked in `onHost` (by node) on the host and all others
/// on the device: nodes in order, each with a reason such as "reads 'w', which ...".
std::vector<std::pair<NodeId, std::string>> findHostFaults(const Graph& graph,
                                                           const std::vector<bool>& onHost);

/// By node: Node::onHost.
std::vector<bool> nodesOnHost(const Graph& graph);

/// By storage: only nodes on the host access it, at least one does, and it persists. It never needs
/// bytes on the device.
std::vector<bool> storagesOfHostNodes(const Graph& graph);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_GRAPH_HOST_UPDATES_H_
