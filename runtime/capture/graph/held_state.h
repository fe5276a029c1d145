// SPDX-License-Identifier: Apache-2.0
//
// State that a step overwrites before it reads it (a buffer that keeps the last batch's statistics,
// spectral norm's vectors) is dead between steps as far as the step goes, but not for whoever saves
// it or looks at it after the training. A graph -> the same graph, in which the first write to such
// a storage counts as one that needs the earlier bytes, so that every plan holds them between
// steps. Gradients that persist are dead there for all.
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_HELD_STATE_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_HELD_STATE_H_

#include "ir/graph/graph.h"

namespace stowage::runtime {

ir::Graph holdStateBetweenSteps(ir::Graph graph);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_HELD_STATE_H_
