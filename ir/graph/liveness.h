// SPDX-License-Identifier: Apache-2.0
//
// Gaps: the stretches of a step in which a storage holds bytes and no node accesses it. The planner
// decides what to do in each. Ranges are node positions in the graph's order. The last gap of a
// persistent storage wraps around the step boundary. The verifier does not use this file: it
// derives lives itself.
#ifndef STOWAGE_IR_GRAPH_LIVENESS_H_
#define STOWAGE_IR_GRAPH_LIVENESS_H_

#include <vector>

#include "ir/base/interval.h"
#include "ir/graph/graph.h"

namespace stowage::ir {

/// One access of a storage by the node at `position`, which runs on the device.
struct Touch {
  int64_t position = 0;
  bool reads = false;
  bool writes = false;
  bool whole = false;
  int32_t version = 0;  // after this touch
};

struct StorageLife {
  std::vector<Touch> touches;  // ascending positions
  /// Live range in a plan that keeps everything. It begins at the first write, or at 0 if version 0
  /// is read or the storage is persistent. It ends after the last access, or at the number of nodes
  /// if the storage is persistent. Empty if the storage is never touched.
  NodeRange live;
};

/// Indexed by storage.
std::vector<StorageLife> computeLives(const Graph& graph);

/// Bytes needed at each node when every storage stays from its first write to its last access,
/// rounded to `alignBytes`, with `temporaries[node]` added. Host storages are not counted. Size:
/// number of nodes.
std::vector<int64_t> computeKeepAllBytes(const Graph& graph, int64_t alignBytes,
                                         const std::vector<Bytes>& temporaries);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_GRAPH_LIVENESS_H_
