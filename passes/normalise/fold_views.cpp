// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/fold_views.h"

#include <utility>

#include "passes/normalise/graph_edit.h"
#include "passes/normalise/view_ops.h"

namespace stowage::passes {

namespace {

ir::Error invalid(std::string message) {
  return ir::makeError(ir::ErrorCode::kInvalidIr, std::move(message));
}

class Folder {
 public:
  explicit Folder(const ir::Graph& graph) : graph_(graph), folded_(graph) {
    for (size_t i = 0; i < graph.storages().size(); ++i) root_.push_back(ir::StorageId(i));
    valuesOf_.resize(graph.storages().size());
    for (size_t i = 0; i < graph.values().size(); ++i) {
      valuesOf_[graph.values()[i].storage.index()].push_back(ir::ValueId(i));
    }
  }

  ir::Error run() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::NodeId id(i);
      if (!isFoldable(id)) {
        nodes_.push_back(graph_.node(id));
        continue;
      }
      if (ir::Error error = fold(id)) return error;
    }
    return ir::success();
  }

  int64_t folded() const { return static_cast<int64_t>(graph_.nodes().size() - nodes_.size()); }

  ir::Graph finish() && {
    for (ir::Node& node : nodes_) folded_.addNode(std::move(node));
    return withoutUnused(std::move(folded_).finish());
  }

 private:
  ir::StorageId rootOf(ir::ValueId value) const {
    return root_[graph_.value(value).storage.index()];
  }

  bool isFoldable(ir::NodeId id) const {
    const ir::Node& node = graph_.node(id);
    const ViewKind kind = viewKind(node.op);
    if (kind == ViewKind::kNone || node.args.empty() || node.results.empty()) return false;
    const auto* operand = std::get_if<ir::ValueArg>(&node.args[0]);
    if (operand == nullptr || !operand->value.isValid() || !node.writes.empty()) return false;
    if (kind == ViewKind::kAlways) return true;
    // reshape and the like: only what was recorded as a view.
    for (const ir::ValueId result : node.results) {
      if (!result.isValid() || rootOf(result) != rootOf(operand->value)) return false;
    }
    return true;
  }

  ir::Error fold(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    const ir::ValueId operand = std::get<ir::ValueArg>(node.args[0]).value;
    for (size_t i = 0; i < node.results.size(); ++i) {
      const ir::ValueId result = node.results[i];
      if (!result.isValid()) continue;
      if (ir::Error error = checkPlace(id, operand, i)) return error;
      if (rootOf(result) == rootOf(operand)) continue;
      const ir::Storage& own = graph_.storage(graph_.value(result).storage);
      if (own.persistent || own.role == ir::Role::kInput) {
        return invalid(graph_.describeNode(id) + " makes a view and names " + own.name +
                       " as its result, expected a storage of the step");
      }
      merge(result, rootOf(operand));
    }
    return ir::success();
  }

  ir::Error checkPlace(ir::NodeId id, ir::ValueId operand, size_t index) const {
    const ir::Node& node = graph_.node(id);
    const ir::Value& result = graph_.value(node.results[index]);
    const std::string what = graph_.describeNode(id) + " makes view %" + result.name;
    // An op that returned its operand as it is has nothing to check.
    const bool same = viewKind(node.op) == ViewKind::kSometimes;
    const std::optional<int64_t> start = computeViewOffset(graph_, node, index);
    const int64_t operandSize = ir::elementBytes(graph_.value(operand).type.dtype);
    const int64_t found = result.type.offset * ir::elementBytes(result.type.dtype);
    if (!same && start && result.type.numElements() > 0 && found != *start * operandSize) {
      return invalid(what + ": found it at byte " + std::to_string(found) +
                     " of its storage, expected byte " + std::to_string(*start * operandSize));
    }
    const ir::Storage& storage = graph_.storage(rootOf(operand));
    if (storage.bytes < result.type.extentBytes()) {
      return invalid(what + ": found its end at byte " +
                     std::to_string(result.type.extentBytes().value()) +
                     ", expected it within the " + std::to_string(storage.bytes.value()) +
                     " bytes of " + storage.name);
    }
    return ir::success();
  }

  /// All values of the result's own storage move to `base`; what the storage was for goes along.
  void merge(ir::ValueId result, ir::StorageId base) {
    const ir::StorageId own = graph_.value(result).storage;
    root_[own.index()] = base;
    const ir::Storage& from = graph_.storage(own);
    ir::Storage& to = folded_.storage(base);
    to.output = to.output || from.output;
    if (to.role == ir::Role::kActivation && from.role != ir::Role::kActivation) {
      to.role = from.role;
      to.name = from.name;
      // Names stay unique until the empty storage goes.
      folded_.storage(own).name = graph_.storage(base).name;
    }
    folded_.storage(own).output = false;
    for (const ir::ValueId value : valuesOf_[own.index()]) folded_.value(value).storage = base;
  }

  const ir::Graph& graph_;
  ir::GraphBuilder folded_;
  std::vector<ir::StorageId> root_;                 // by storage: the one it became part of
  std::vector<std::vector<ir::ValueId>> valuesOf_;  // by storage, of the graph as it came
  std::vector<ir::Node> nodes_;
};

}  // namespace

ir::Expected<PassReport> FoldViews::run(PassState& state) const {
  Folder folder(state.graph);
  if (ir::Error error = folder.run()) return error;
  const int64_t folded = folder.folded();
  if (folded > 0) state.graph = std::move(folder).finish();
  return PassReport{.changed = folded > 0, .counters = {{"views", folded}}};
}

}  // namespace stowage::passes
