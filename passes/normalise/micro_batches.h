// SPDX-License-Identifier: Apache-2.0
//
// Finds micro-batches: a step that accumulates gradients runs the same nodes several times, each
// time on another part of the batch. They are told by what they read: the sequence of nodes that
// read persistent storages as the step found them (weights, constants) is one sequence repeated.
// Storages and phases decide, never names or op kinds. Also where such a micro-batch is best cut
// into stretches. Not here: whether an order is legal (order_by_layer.h).
#ifndef STOWAGE_PASSES_NORMALISE_MICRO_BATCHES_H_
#define STOWAGE_PASSES_NORMALISE_MICRO_BATCHES_H_

#include <cstdint>
#include <vector>

#include "ir/graph/graph.h"

namespace stowage::passes {

struct MicroBatches {
  /// A node that reads persistent storages.
  struct Read {
    ir::NodeId node;
    std::vector<ir::StorageId> storages;
  };
  int64_t count = 1;  // 1: none
  /// Of all micro-batches in the graph's order: `count` parts of equal length.
  std::vector<Read> reads;
  int64_t readsEach() const { return static_cast<int64_t>(reads.size()) / count; }
};

/// The most micro-batches that the reads of the most bytes allow.
MicroBatches findMicroBatches(const ir::Graph& graph);

/// Where a node lies in its micro-batch: at its k-th read (2k + 1), or in the gap before it (2k).
/// The last gap, 2 * readsEach(), is also the first one of the next micro-batch.
std::vector<int64_t> findPlaces(const ir::Graph& graph, const MicroBatches& batches);

/// Places where stretches begin, in rising order; the first stretch begins at 0 and is not listed.
/// All micro-batches hold what is alive at a cut at once. So a stretch ends where that is no more
/// than the bytes of the storages that it reads, and not less than `least`; and within as many
/// bytes again, where the fewest are alive. None is where forward turns to backward: what a loss
/// keeps for its backward is the most.
std::vector<int64_t> findCuts(const ir::Graph& graph, const MicroBatches& batches,
                              llvm::ArrayRef<int64_t> places, Bytes least);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_MICRO_BATCHES_H_
