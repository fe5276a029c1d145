// SPDX-License-Identifier: Apache-2.0
//
// What the storages of a captured step are for: every storage that is an input, lives across steps
// or is a gradient -> name, role, module path.
// By registration where module and optimizer know the tensor; else by who made it and who writes
// it: created by the first step's update is state, made outside is a constant, and so on.
// Invariants: order is inputs, module tensors, optimizer state, the rest in order of first use; a
// parameter that no node writes is frozen.
// Not here: names of activations (graph_assembly.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_KNOWN_STORAGES_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_KNOWN_STORAGES_H_

#include <string>
#include <utility>
#include <vector>

#include "runtime/capture/graph/first_values.h"
#include "runtime/capture/graph/graph_assembly.h"
#include "runtime/capture/host_state/module_tensors.h"
#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

struct StepTensors {
  const std::vector<std::pair<std::string, at::Tensor>>& inputs;
  const ModuleTensors& module;
  const OptimizerList& optimizers;
  /// Parameter and the gradient it had when `update` began.
  const std::vector<std::pair<at::Tensor, at::Tensor>>& gradients;
};

std::vector<KnownStorage> findKnownStorages(const StepTrace& first, const StepTrace& last,
                                            const StorageTable& storages,
                                            const StepTensors& tensors);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_KNOWN_STORAGES_H_
