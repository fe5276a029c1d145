// SPDX-License-Identifier: Apache-2.0
//
// Which nodes draw random numbers. The op table (op_table.h) marks ops that may draw: their
// recomputes restore the RNG state. A fused attention op without dropout draws nothing: it takes no
// numbers from the generator, so its place among the ops that do is free.
#ifndef STOWAGE_IR_GRAPH_RANDOM_OPS_H_
#define STOWAGE_IR_GRAPH_RANDOM_OPS_H_

#include "ir/graph/graph.h"

namespace stowage::ir {

/// False for ops that never draw, and where the probability among the arguments is the number 0.
bool drawsRandomNumbers(const Node& node);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_GRAPH_RANDOM_OPS_H_
