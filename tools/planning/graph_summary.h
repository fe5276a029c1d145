// SPDX-License-Identifier: Apache-2.0
//
// A captured step in one line, and as JSON.
#ifndef STOWAGE_TOOLS_PLANNING_GRAPH_SUMMARY_H_
#define STOWAGE_TOOLS_PLANNING_GRAPH_SUMMARY_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ir/graph/graph.h"

namespace stowage::tools {

struct GraphSummary {
  int64_t parameters = 0;  // elements, frozen ones included
  int64_t frozen = 0;      // elements
  Bytes parameterBytes;
  Bytes stateBytes;  // optimizer state, masters, counters
};
GraphSummary summariseGraph(const ir::Graph& graph);

/// "gpt2 (124.4 M parameters, device cpu): 2911 nodes, 1204 storages"
std::string describeGraph(const ir::Graph& graph, const GraphSummary& summary);
nlohmann::ordered_json graphSummaryJson(const ir::Graph& graph, const GraphSummary& summary);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_GRAPH_SUMMARY_H_
