// SPDX-License-Identifier: Apache-2.0
//
// Keeps state that a step overwrites before reading it (a buffer with the last batch's statistics,
// spectral norm's vectors). The step does not need it between steps, but saving and inspecting the
// model do. The output is the same graph, in which the first write to such a storage counts as one
// that reads the earlier bytes, so every plan keeps them between steps. Persistent gradients are
// left out: nothing reads those there.
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_HELD_STATE_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_HELD_STATE_H_

#include "ir/graph/graph.h"

namespace stowage::runtime {

ir::Graph holdStateBetweenSteps(ir::Graph graph);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_HELD_STATE_H_
