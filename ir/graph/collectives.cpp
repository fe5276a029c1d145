// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/collectives.h"

namespace stowage::ir {

bool isGather(const Node& node) { return node.op == kAllGather; }

bool isCollective(const Node& node) { return isGather(node) || node.op == kAllToAll; }

Bytes receivedBytes(const Graph& graph, const Node& collective) {
  const TensorType& type = graph.value(collective.results.front()).type;
  const int64_t all = type.numElements() * elementBytes(type.dtype);
  return Bytes(all - all / graph.ranks());
}

}  // namespace stowage::ir
