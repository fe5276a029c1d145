// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_names.h"

#include <llvm/ADT/STLExtras.h>

#include <optional>
#include <utility>

#include "runtime/capture/graph/scopes.h"

namespace stowage::runtime {
namespace {

using Path = std::optional<std::string>;  // none: not known yet

Path pathOfAccesses(const ir::Graph& graph, ir::NodeId node,
                    const std::vector<std::string>& moduleOf) {
  Path path;
  for (const ir::Access& access : graph.accesses(node)) {
    const std::string& module = moduleOf[access.storage.index()];
    if (!module.empty()) path = path ? sharedPath(*path, module) : module;
  }
  return path;
}

/// The tensors of an argument, as a list of one where it is a single one.
llvm::ArrayRef<ir::ValueArg> elementsOf(const ir::Argument& argument) {
  if (const auto* single = std::get_if<ir::ValueArg>(&argument)) return *single;
  if (const auto* list = std::get_if<ir::ValueList>(&argument)) return *list;
  return {};
}

class GradientFinder {
 public:
  GradientFinder(const ir::Graph& graph, const std::vector<ir::Phase>& phases,
                 const std::vector<ir::StorageId>& ownerOf)
      : graph_(graph), ownerOf_(ownerOf), gradientOf_(graph.storages().size()) {
    madeByOptimizer_.assign(graph.storages().size(), false);
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      if (phases[i] != ir::Phase::kOptimizer) continue;
      readUpdate(graph.nodes()[i]);
      for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
        if (access.writtenVersion == 1) madeByOptimizer_[access.storage.index()] = true;
      }
    }
  }

  std::vector<ir::StorageId> take() { return std::move(gradientOf_); }

 private:
  void readUpdate(const ir::Node& node) {
    for (const ir::Node::Write& write : node.writes) {
      const ir::StorageId owner = ownerOf_[graph_.value(write.value).storage.index()];
      if (!owner.isValid()) continue;
      for (const ir::Argument& argument : node.args) {
        const llvm::ArrayRef<ir::ValueArg> targets = elementsOf(argument);
        for (size_t i = 0; i < targets.size(); ++i) {
          if (targets[i].value == write.value) readBeside(node, i, owner);
        }
      }
    }
  }

  /// Element `i` of the other arguments.
  void readBeside(const ir::Node& node, size_t i, ir::StorageId owner) {
    for (const ir::Argument& argument : node.args) {
      const llvm::ArrayRef<ir::ValueArg> elements = elementsOf(argument);
      if (i < elements.size() && elements[i].value.isValid()) note(elements[i].value, owner);
    }
  }

  void note(ir::ValueId value, ir::StorageId owner) {
    const ir::StorageId storage = graph_.value(value).storage;
    const bool made =
        graph_.storage(storage).role == ir::Role::kActivation && !madeByOptimizer_[storage.index()];
    if (!made || gradientOf_[storage.index()].isValid()) return;
    // A gradient has as many elements as its parameter, whatever its element type.
    const int64_t elements = graph_.value(value).type.numElements();
    const int64_t wanted = elementsOfStorage(owner);
    if (elements == wanted) gradientOf_[storage.index()] = owner;
  }

  int64_t elementsOfStorage(ir::StorageId storage) {
    if (elements_.empty()) {
      elements_.assign(graph_.storages().size(), -1);
      for (const ir::Value& value : graph_.values()) {
        int64_t& count = elements_[value.storage.index()];
        if (count < 0) count = value.type.numElements();
      }
    }
    return elements_[storage.index()];
  }

  const ir::Graph& graph_;
  const std::vector<ir::StorageId>& ownerOf_;
  std::vector<ir::StorageId> gradientOf_;
  std::vector<bool> madeByOptimizer_;
  std::vector<int64_t> elements_;  // by storage: of its first value
};

}  // namespace

std::vector<std::string> findScopes(const ir::Graph& graph, const std::vector<ir::Phase>& phases,
                                    const std::vector<std::string>& moduleOf) {
  std::vector<std::string> scopes(graph.nodes().size());
  std::string before;
  size_t gap = 0;  // first node whose path is not known yet
  for (size_t i = 0; i < scopes.size(); ++i) {
    if (phases[i] == ir::Phase::kOptimizer) continue;
    const Path path = pathOfAccesses(graph, ir::NodeId(i), moduleOf);
    if (!path) continue;
    for (; gap < i; ++gap) {
      if (phases[gap] != ir::Phase::kOptimizer) scopes[gap] = pathBetween(before, *path);
    }
    scopes[i] = before = *path;
    gap = i + 1;
  }
  return scopes;
}

std::vector<ir::StorageId> findGradients(const ir::Graph& graph,
                                         const std::vector<ir::Phase>& phases,
                                         const std::vector<ir::StorageId>& ownerOf) {
  return GradientFinder(graph, phases, ownerOf).take();
}

}  // namespace stowage::runtime
