// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/in_place_reuse.h"

#include "ir/graph/op_table.h"

namespace stowage::planner {

namespace {

bool coversStorage(const ir::Graph& graph, const ir::Value& value) {
  return value.type.offset == 0 && value.type.isContiguous() &&
         value.type.extentBytes() == graph.storage(value.storage).bytes;
}

// Every appearance of the storage among the operands must be the same plain tensor: a transposed
// view beside it would be read after its bytes have changed.
bool isReadAsOneTensor(const ir::Graph& graph, const ir::Node& node, const ir::Value& operand) {
  bool same = true;
  ir::forEachTensorArgument(node, [&](ir::ValueId id) {
    const ir::Value& other = graph.value(id);
    if (other.storage == operand.storage && !(other.type == operand.type)) same = false;
  });
  return same;
}

}  // namespace

ir::StorageId inPlaceCandidate(const ir::Graph& graph, ir::NodeId id, int which) {
  const ir::Node& node = graph.node(id);
  const ir::OpInfo& info = ir::lookUpOp(node.op);
  const int place = which == 0 ? info.inPlaceOperand : info.inPlaceOperand2;
  if (place < 0 || static_cast<size_t>(place) >= node.args.size() || node.results.empty())
    return {};
  const auto* argument = std::get_if<ir::ValueArg>(&node.args[static_cast<size_t>(place)]);
  if (argument == nullptr || !argument->value.isValid() || !node.results[0].isValid()) return {};
  const ir::Value& operand = graph.value(argument->value);
  const ir::Value& result = graph.value(node.results[0]);
  const ir::Storage& from = graph.storage(operand.storage);
  const ir::Storage& to = graph.storage(result.storage);
  if (operand.storage == result.storage || from.persistent || to.persistent) return {};
  if (from.home == ir::Space::kHost || to.home == ir::Space::kHost) return {};
  if (operand.type != result.type || !coversStorage(graph, operand) ||
      !coversStorage(graph, result)) {
    return {};
  }
  if (!isReadAsOneTensor(graph, node, operand)) return {};
  return operand.storage;
}

void reuseOperandsInPlace(const GapTable& table, Expansion& expansion) {
  const ir::Graph& graph = table.problem().graph;
  for (int32_t i = 1; i < expansion.launchCount(); ++i) {
    Launch& launch = expansion.launches[static_cast<size_t>(i)];
    if (launch.out.empty()) continue;
    for (const int which : {0, 1}) {
      const ir::StorageId from = inPlaceCandidate(graph, launch.node, which);
      if (!from.isValid()) continue;
      const ir::StorageId to = graph.value(graph.node(launch.node).results[0]).storage;
      int32_t source = -1;
      int32_t target = -1;
      for (const int32_t liveRange : launch.in) {
        if (expansion.liveRanges[static_cast<size_t>(liveRange)].storage == from)
          source = liveRange;
      }
      for (const int32_t liveRange : launch.out) {
        if (expansion.liveRanges[static_cast<size_t>(liveRange)].storage == to) target = liveRange;
      }
      if (source < 0 || target < 0) continue;
      LiveRange& dying = expansion.liveRanges[static_cast<size_t>(source)];
      const LiveRange& born = expansion.liveRanges[static_cast<size_t>(target)];
      if (dying.end != i || dying.lastWrite == i || dying.offload >= 0 || born.begin != i) continue;
      dying.takenBy = target;
      launch.takes = source;
      break;
    }
  }
}

}  // namespace stowage::planner
