// SPDX-License-Identifier: Apache-2.0
//
// State of a CUDA step that lives on the host: a constant of some bytes, which ops read when they
// are launched, as libtorch reads a CPU tensor of one element that a CUDA op is given. It is put
// into the host arena before the first step and stays there, so no launch can read it too early.
// State that the step writes there is refused: a launch would change it, whatever the device does
// at that moment.
#ifndef STOWAGE_RUNTIME_EXECUTOR_HOST_STATE_H_
#define STOWAGE_RUNTIME_EXECUTOR_HOST_STATE_H_

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::runtime {

/// Errors: kUnsupported for state on the host that a node writes, with all such nodes.
ir::Error checkHostState(const ir::Graph& graph);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_HOST_STATE_H_
