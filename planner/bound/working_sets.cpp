// SPDX-License-Identifier: Apache-2.0
#include "planner/bound/working_sets.h"

#include <algorithm>

#include "ir/costs/unplanned_peak.h"
#include "ir/graph/op_table.h"

namespace stowage::planner {

namespace {

// Wider than planner/evaluate/in_place_reuse.h: whatever the verifier could accept counts, so that
// this stays below every legal schedule.
int64_t largestInPlaceReuse(const Problem& problem, ir::NodeId id) {
  const ir::Graph& graph = problem.graph;
  const ir::Node& node = graph.node(id);
  const ir::OpInfo& info = ir::lookUpOp(node.op);
  if (!problem.allowed.inPlaceReuse || node.results.empty() || !node.results[0].isValid()) return 0;
  const ir::Value& result = graph.value(node.results[0]);
  int64_t largest = 0;
  for (const int place : {int{info.inPlaceOperand}, int{info.inPlaceOperand2}}) {
    if (place < 0 || static_cast<size_t>(place) >= node.args.size()) continue;
    const auto* argument = std::get_if<ir::ValueArg>(&node.args[static_cast<size_t>(place)]);
    if (argument == nullptr || !argument->value.isValid()) continue;
    const ir::Value& operand = graph.value(argument->value);
    const Bytes shared =
        std::min(graph.storage(operand.storage).bytes, graph.storage(result.storage).bytes);
    if (operand.storage == result.storage || operand.type.sizes != result.type.sizes) continue;
    largest = std::max(largest, roundUp(shared, problem.target.alignBytes).value());
  }
  return largest;
}

}  // namespace

std::vector<int64_t> computeWorkingSets(const Problem& problem) {
  const ir::Graph& graph = problem.graph;
  const int64_t align = problem.target.alignBytes;
  const int64_t reserved = ir::sumReserved(problem.target.reserved, align).value();
  std::vector<int64_t> sets;
  sets.reserve(graph.nodes().size());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (graph.nodes()[i].onHost) {
      sets.push_back(reserved);
      continue;
    }
    int64_t bytes = reserved + roundUp(problem.costs.nodes[i].temporary, align).value();
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      const ir::Storage& storage = graph.storage(access.storage);
      if (storage.home != ir::Space::kHost) bytes += roundUp(storage.bytes, align).value();
    }
    sets.push_back(bytes - largestInPlaceReuse(problem, ir::NodeId(i)));
  }
  return sets;
}

}  // namespace stowage::planner
