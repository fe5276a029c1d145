// SPDX-License-Identifier: Apache-2.0
//
// Would several ranks, each with data of its own, stay alike if the optimizer's nodes read the mean
// of the gradients over ranks instead of their own? State that an update writes has to be the same
// on all of them after each step, or they train apart without a word. Asked before a step is made
// one of several ranks; knows nothing of shards.
#ifndef STOWAGE_PASSES_NORMALISE_ALIKE_RANKS_H_
#define STOWAGE_PASSES_NORMALISE_ALIKE_RANKS_H_

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::passes {

/// Errors: kUnsupported naming what is in the way:
///   - a node of the optimizer that draws random numbers or that the op table does not know;
///   - one that reads data or what forward and backward make, other than gradients of the step;
///   - state of the optimizer that forward or backward write;
///   - a gradient that lives from step to step, is delivered, has no floating type or two types, is
///     written after an update has read it, or is read before (a norm, a square: not what the
///     mean's would be);
///   - a collective: the step is one of several ranks already.
ir::Error checkRanksStayAlike(const ir::Graph& graph);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_ALIKE_RANKS_H_
