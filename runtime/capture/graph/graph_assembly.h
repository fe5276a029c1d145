// SPDX-License-Identifier: Apache-2.0
//
// A recorded step and what its storages are for -> the ir::Graph, with names.
// Activations are named by module and op ("h.3.mlp/gelu.0"), gradients and state by parameter
// ("grad(wte.weight)", "m(wte.weight)").
// Invariants: inputs and persistent storages come first, in the order given; then those that the
// nodes make, in order.
// Not here: finding out roles and scalars.
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_GRAPH_ASSEMBLY_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_GRAPH_ASSEMBLY_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph/graph.h"
#include "runtime/capture/trace/step_diff.h"
#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

/// A storage whose part in the step is known before its nodes are looked at.
struct KnownStorage {
  StorageKey key = 0;
  std::string name;
  ir::Role role = ir::Role::kActivation;
  bool persistent = false;
  ir::TensorType type;  // of its first value
  std::string path;     // of its module
};

struct StepRecord {
  const StepTrace& step;
  const StorageTable& storages;
  std::vector<KnownStorage> known;
  std::vector<std::string> scopes;      // one per node
  std::vector<ScalarSite> stepScalars;  // in order
  std::vector<ir::ValueId> reports;     // positions in step.tensors
  bool outputGradients = false;
  bool onCpu = false;  // device arguments say "cpu": for replaying parts of a step there
};

struct AssembledGraph {
  ir::Graph graph;
  std::vector<StorageKey> keys;      // by StorageId
  std::vector<ir::ValueId> valueOf;  // by position in step.tensors; invalid: in no node
  std::unordered_map<StorageKey, ir::ValueId> firstValues;  // of persistent storages and inputs
};

AssembledGraph assembleGraph(const StepRecord& record, const std::string& name,
                             ir::Provenance provenance);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_GRAPH_ASSEMBLY_H_
