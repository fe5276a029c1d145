// SPDX-License-Identifier: Apache-2.0
#include "passes/arrange_graph.h"

#include <algorithm>
#include <utility>

#include "passes/normalise/block_rows.h"
#include "passes/normalise/defer_updates.h"
#include "passes/normalise/hoist_updates.h"
#include "passes/normalise/host_updates.h"
#include "passes/normalise/order_by_layer.h"
#include "passes/normalise/shard_states.h"

namespace stowage::passes {

const char* orderName(Order order) {
  switch (order) {
    case Order::kProgram:
      return "program";
    case Order::kHoisted:
      return "hoisted";
    case Order::kByLayer:
      return "by-layer";
    case Order::kDeferred:
      return "deferred";
  }
  return "";
}

std::optional<Order> findOrder(llvm::StringRef name) {
  for (const Order order : kAllOrders) {
    if (name == orderName(order)) return order;
  }
  return std::nullopt;
}

std::string scopeBesideOrders(int64_t rowBlocks, int64_t hostUpdates) {
  return (rowBlocks > 1 ? ",row-blocks=" + std::to_string(rowBlocks) : "") +
         (hostUpdates > 0 ? ",host-updates=" + std::to_string(hostUpdates) : "");
}

namespace {

ir::Expected<ir::Graph> orderGraph(const ir::Graph& graph, Order order, int64_t rowBlocks) {
  PassState state;
  state.graph = graph;
  ir::Expected<PassReport> blocked = BlockRows(BlockRowsOptions{rowBlocks}).run(state);
  if (!blocked) return blocked.takeError();
  if (order == Order::kProgram) return std::move(state.graph);
  if (order == Order::kByLayer) {
    ir::Expected<PassReport> layered = OrderByLayer().run(state);
    if (!layered) return layered.takeError();
  }
  ir::Expected<PassReport> hoisted = HoistUpdates().run(state);
  if (!hoisted) return hoisted.takeError();
  if (order != Order::kDeferred) return std::move(state.graph);
  ir::Expected<PassReport> deferred = DeferUpdates().run(state);
  if (!deferred) return deferred.takeError();
  return std::move(state.graph);
}

}  // namespace

ir::Expected<ir::Graph> arrangeGraph(const ir::Graph& graph, Order order, int64_t rowBlocks,
                                     int64_t hostUpdates) {
  ir::Expected<ir::Graph> ordered = orderGraph(graph, order, rowBlocks);
  if (!ordered || hostUpdates == 0) return ordered;
  PassState state;
  state.graph = std::move(*ordered);
  ir::Expected<PassReport> marked = HostUpdates(HostUpdatesOptions{hostUpdates}).run(state);
  if (!marked) return marked.takeError();
  return std::move(state.graph);
}

ir::Expected<ir::Graph> graphForRanks(const ir::Graph& graph, int64_t ranks) {
  PassState state;
  state.graph = graph;
  ir::Expected<PassReport> sharded = ShardStates(ShardStatesOptions{ranks}).run(state);
  if (!sharded) return sharded.takeError();
  return std::move(state.graph);
}

ir::Expected<std::vector<int64_t>> findRowBlocks(const ir::Graph& graph,
                                                 const std::vector<int64_t>& wanted) {
  std::vector<int64_t> sorted = wanted;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> found;
  size_t nodes = graph.nodes().size();
  for (const int64_t blocks : sorted) {
    ir::Expected<ir::Graph> blocked = arrangeGraph(graph, Order::kProgram, blocks);
    if (!blocked) return blocked.takeError();
    // More blocks are more nodes.
    if (blocked->nodes().size() == nodes) continue;
    nodes = blocked->nodes().size();
    found.push_back(blocks);
  }
  return found;
}

}  // namespace stowage::passes
