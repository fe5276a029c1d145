// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/graph_edit.h"

#include <llvm/ADT/STLExtras.h>

#include <utility>

#include "ir/base/affix.h"
#include "ir/graph/op_table.h"
#include "ir/graph/random_ops.h"

namespace stowage::passes {

namespace {

/// Which storages and values a smaller graph keeps.
struct Kept {
  std::vector<bool> storages;
  std::vector<bool> values;
};

Kept findUsed(const ir::Graph& graph) {
  Kept kept{std::vector<bool>(graph.storages().size(), false),
            std::vector<bool>(graph.values().size(), false)};
  const auto use = [&](ir::ValueId value) {
    if (!value.isValid()) return;
    kept.values[value.index()] = true;
    kept.storages[graph.value(value).storage.index()] = true;
  };
  for (const ir::Node& node : graph.nodes()) {
    ir::forEachTensorArgument(node, use);
    for (const ir::ValueId result : node.results) use(result);
  }
  for (size_t i = 0; i < kept.storages.size(); ++i) {
    if (!isLocal(graph.storages()[i])) kept.storages[i] = true;
  }
  // A storage is declared by its first value; those of lasting storages are known outside.
  std::vector<bool> declared(graph.storages().size(), false);
  for (size_t i = 0; i < kept.values.size(); ++i) {
    const size_t storage = graph.values()[i].storage.index();
    const bool first = !declared[storage];
    declared[storage] = true;
    if (!kept.storages[storage]) kept.values[i] = false;
    if (kept.storages[storage] && (first || !isLocal(graph.storages()[storage]))) {
      kept.values[i] = true;
    }
  }
  return kept;
}

void renumber(ir::Argument& argument, const std::vector<ir::ValueId>& newId) {
  const auto rename = [&](ir::ValueArg& value) {
    if (value.value.isValid()) value.value = newId[value.value.index()];
  };
  if (auto* single = std::get_if<ir::ValueArg>(&argument)) rename(*single);
  if (auto* list = std::get_if<ir::ValueList>(&argument)) {
    for (ir::ValueArg& element : *list) rename(element);
  }
}

ir::Node renumbered(ir::Node node, const std::vector<ir::ValueId>& newId) {
  for (ir::Argument& argument : node.args) renumber(argument, newId);
  for (ir::ValueId& result : node.results) {
    if (result.isValid()) result = newId[result.index()];
  }
  for (ir::Node::Write& write : node.writes) write.value = newId[write.value.index()];
  return node;
}

}  // namespace

ir::Graph withNodes(const ir::Graph& graph, std::vector<ir::Node> nodes) {
  ir::GraphBuilder builder(graph);
  for (ir::Node& node : nodes) builder.addNode(std::move(node));
  return std::move(builder).finish();
}

ir::Graph withOrder(const ir::Graph& graph, llvm::ArrayRef<ir::NodeId> order) {
  ir::GraphBuilder builder(graph);
  for (const ir::NodeId node : order) builder.addNode(graph.node(node));
  return std::move(builder).finish();
}

ir::Graph withoutUnused(const ir::Graph& graph) {
  const Kept kept = findUsed(graph);
  ir::GraphBuilder builder(graph.name(), graph.provenance());
  builder.setRanks(graph.ranks());
  for (const ir::StepScalar& scalar : graph.scalars()) builder.addScalar(scalar);
  // Scopes keep their ids: nodes name them by position.
  for (const std::string& scope : graph.scopes()) builder.internScope(scope);
  std::vector<ir::StorageId> newStorage(graph.storages().size());
  for (size_t i = 0; i < newStorage.size(); ++i) {
    if (kept.storages[i]) newStorage[i] = builder.addStorage(graph.storages()[i]);
  }
  std::vector<ir::ValueId> newValue(graph.values().size());
  for (size_t i = 0; i < newValue.size(); ++i) {
    if (!kept.values[i]) continue;
    ir::Value value = graph.values()[i];
    value.storage = newStorage[value.storage.index()];
    newValue[i] = builder.addValue(std::move(value));
  }
  for (const ir::Node& node : graph.nodes()) builder.addNode(renumbered(node, newValue));
  return std::move(builder).finish();
}

bool isCollective(llvm::StringRef op) {
  static constexpr llvm::StringLiteral kCollectives[] = {"c10d.", "_c10d_functional.", "stowage."};
  const auto isOf = [&](llvm::StringRef prefix) { return ir::startsWith(op, prefix); };
  return llvm::any_of(kCollectives, isOf);
}

bool keepsOrder(const ir::Node& node) {
  return isCollective(node.op) || !ir::lookUpOp(node.op).known || ir::drawsRandomNumbers(node);
}

bool isLocal(const ir::Storage& storage) {
  return !storage.persistent && !storage.output && storage.role != ir::Role::kInput;
}

}  // namespace stowage::passes
