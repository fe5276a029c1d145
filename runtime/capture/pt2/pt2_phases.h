// SPDX-License-Identifier: Apache-2.0
//
// Which part of the step a node belongs to. An archive does not say, so it follows from the data:
// - optimizer: writes a parameter, master weight, optimizer state or step counter; or, if the loss
//   does not need it, reads what such a node wrote or a learning rate, or is computed from state
//   alone;
// - forward: the loss needs it;
// - backward: none of these, and an update or a gradient that is delivered needs it (clipping
//   included);
// - nodes that nothing of this needs (metrics, unused results) go with the node before them.
// Passes ask which nodes are those of the optimizer; the other phases are for people.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_PHASES_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_PHASES_H_

#include <llvm/ADT/ArrayRef.h>

#include <vector>

#include "ir/graph/graph.h"

namespace stowage::runtime {

/// By node: do the last versions of these values' storages depend on it?
std::vector<bool> findAncestors(const ir::Graph& graph, llvm::ArrayRef<ir::ValueId> values);

struct PhaseFacts {
  std::vector<bool> forward;           // by node: the loss needs it
  std::vector<bool> updated;           // by storage: parameters, masters, state, counters
  std::vector<bool> settings;          // by storage: state, counters and learning rates
  std::vector<bool> rates;             // by storage: learning rates
  std::vector<ir::ValueId> gradients;  // delivered by the step
};

std::vector<ir::Phase> findPhases(const ir::Graph& graph, const PhaseFacts& facts);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_PHASES_H_
