// SPDX-License-Identifier: Apache-2.0
//
// Invariants of a graph on its own: ids in range, views inside their storages, unique names, every
// version read was written before, roles and persistence that go together, whole-writes that are
// whole. Broken IR is data, not a programming error: all violations come back as notes of one
// kInvalidIr error.
#ifndef STOWAGE_IR_CHECK_GRAPH_H_
#define STOWAGE_IR_CHECK_GRAPH_H_

#include "ir/error.h"
#include "ir/graph.h"

namespace stowage::ir {

Error checkGraph(const Graph& graph);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_CHECK_GRAPH_H_
