// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/graph_summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "ir/schedule/fingerprint.h"

namespace stowage::tools {

namespace {

std::string deviceText(const ir::Provenance& from) {
  const bool saysMore = !from.target.empty() && from.target != from.device;
  return saysMore ? from.device + ", target " + from.target : from.device;
}

}  // namespace

GraphSummary summariseGraph(const ir::Graph& graph) {
  // A storage's elements are those of its first value: the one it was declared with.
  std::vector<int64_t> elements(graph.storages().size(), -1);
  for (const ir::Value& value : graph.values()) {
    int64_t& count = elements[value.storage.index()];
    if (count < 0) count = value.type.numElements();
  }
  GraphSummary summary;
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    const ir::Storage& storage = graph.storages()[i];
    switch (storage.role) {
      case ir::Role::kFrozen:
        summary.frozen += elements[i];
        [[fallthrough]];
      case ir::Role::kParameter:
        summary.parameters += elements[i];
        summary.parameterBytes += storage.bytes;
        break;
      case ir::Role::kState:
      case ir::Role::kMaster:
      case ir::Role::kStepCounter:
        summary.stateBytes += storage.bytes;
        break;
      default:
        break;
    }
  }
  return summary;
}

std::string describeGraph(const ir::Graph& graph, const GraphSummary& summary) {
  const auto millions = [](int64_t count) {
    return fmt::format("{:.1f} M", static_cast<double>(count) / 1e6);
  };
  std::string parameters = millions(summary.parameters) + " parameters";
  if (summary.frozen > 0) parameters += ", " + millions(summary.frozen) + " frozen";
  return fmt::format("{} ({}, {}): {} nodes, {} storages", graph.name(), parameters,
                     deviceText(graph.provenance()), graph.nodes().size(), graph.storages().size());
}

nlohmann::ordered_json graphSummaryJson(const ir::Graph& graph, const GraphSummary& summary) {
  return {{"name", graph.name()},
          {"recipe", graph.provenance().recipe},
          {"device", graph.provenance().device},
          {"target", graph.provenance().target},
          {"deterministic", graph.provenance().deterministic},
          {"fingerprint", ir::fingerprint(graph)},
          {"nodes", graph.nodes().size()},
          {"storages", graph.storages().size()},
          {"step_scalars", graph.scalars().size()},
          {"parameters", summary.parameters},
          {"frozen_parameters", summary.frozen},
          {"parameter_bytes", summary.parameterBytes.value()},
          {"state_bytes", summary.stateBytes.value()}};
}

}  // namespace stowage::tools
