// SPDX-License-Identifier: Apache-2.0
//
// The graphs of one step that plans may be about: its orders, in several numbers of row blocks,
// with several shares of the updates on the host. A plan names its own by these three and a
// fingerprint.
#ifndef STOWAGE_PASSES_ARRANGE_GRAPH_H_
#define STOWAGE_PASSES_ARRANGE_GRAPH_H_

#include <llvm/ADT/StringRef.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::passes {

enum class Order : uint8_t {
  kProgram,  // as captured
  kHoisted,  // updates as early as legal
  kByLayer,  // micro-batches layer by layer, and updates as early as legal
  kDeferred  // updates as early as legal; in the next step where that is the end of backward
};
inline constexpr std::array<Order, 4> kAllOrders = {Order::kProgram, Order::kHoisted,
                                                    Order::kByLayer, Order::kDeferred};
const char* orderName(Order order);
std::optional<Order> findOrder(llvm::StringRef name);

/// The shares that are tried where updates may run on the host. A GPU has far more memory bandwidth
/// than its host, so small shares are the useful ones.
inline constexpr std::array<int64_t, 6> kHostShares = {8, 15, 25, 50, 75, 100};

/// The graph that plans of `order`, of so many row blocks, and of that share of updates on the host
/// are about. `graph` must be normalised. Equal input, equal output.
ir::Expected<ir::Graph> arrangeGraph(const ir::Graph& graph, Order order, int64_t rowBlocks = 1,
                                     int64_t hostUpdates = 0);

/// The graph that each of `ranks` runs (passes/normalise/shard_states.h): `graph` itself where it
/// is for so many. Errors: kUnsupported for steps whose ranks would train apart; kInvalidArgument
/// for one of another number of ranks.
ir::Expected<ir::Graph> graphForRanks(const ir::Graph& graph, int64_t ranks);

/// The numbers among `wanted` that give graphs of their own, in rising order: none where nothing
/// pays, and one of those that give the same blocks.
ir::Expected<std::vector<int64_t>> findRowBlocks(const ir::Graph& graph,
                                                 const std::vector<int64_t>& wanted);

/// What a bound says of row blocks and updates on the host: ",row-blocks=16,host-updates=50"; "" of
/// none.
std::string scopeBesideOrders(int64_t rowBlocks, int64_t hostUpdates);
}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_ARRANGE_GRAPH_H_
