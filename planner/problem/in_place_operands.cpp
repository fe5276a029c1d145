// SPDX-License-Identifier: Apache-2.0
#include "planner/problem/in_place_operands.h"

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
  const int8_t found = which == 0 ? info.inPlaceOperand : info.inPlaceOperand2;
  const auto place = static_cast<uint8_t>(found);
  if (found < 0 || place >= node.args.size() || node.results.empty()) return {};
  const auto* argument = std::get_if<ir::ValueArg>(&node.args[place]);
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

}  // namespace stowage::planner
