// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_phases.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLExtras.h>

#include <cstdint>
#include <utility>

namespace stowage::runtime {
namespace {

/// Versions of storages that something needs, followed from the end of the step to its beginning.
class AncestorFinder {
 public:
  explicit AncestorFinder(const ir::Graph& graph) : graph_(graph) {}

  void need(ir::StorageId storage, int32_t version) { needed_.insert({storage.raw(), version}); }
  void needInputsOf(ir::NodeId node) {
    for (const ir::Access& access : graph_.accesses(node)) {
      if (access.reads()) need(access.storage, access.readVersion);
    }
  }
  bool isNeeded(ir::NodeId node) const {
    return llvm::any_of(graph_.accesses(node), [&](const ir::Access& access) {
      return access.writes() && needed_.contains({access.storage.raw(), access.writtenVersion});
    });
  }

 private:
  const ir::Graph& graph_;
  llvm::DenseSet<std::pair<int32_t, int32_t>> needed_;
};

class PhaseFinder {
 public:
  PhaseFinder(const ir::Graph& graph, const PhaseFacts& facts)
      : graph_(graph),
        facts_(facts),
        backward_(findBackward()),
        fromSettings_(facts.settings),
        fromOptimizer_(graph.storages().size(), false) {}

  std::vector<ir::Phase> find() {
    std::vector<ir::Phase> phases;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::NodeId node(i);
      const ir::Phase before = phases.empty() ? ir::Phase::kForward : phases.back();
      phases.push_back(phaseOf(node, before));
      note(node, phases.back());
    }
    return phases;
  }

 private:
  bool isUpdate(ir::NodeId node) const {
    return llvm::any_of(graph_.accesses(node), [&](const ir::Access& access) {
      return access.writes() && facts_.updated[access.storage.index()];
    });
  }

  /// Everything that an update or a delivered gradient needs, the forward pass included.
  std::vector<bool> findBackward() const {
    AncestorFinder ancestors(graph_);
    for (const ir::ValueId gradient : facts_.gradients) {
      const ir::StorageId storage = graph_.value(gradient).storage;
      ancestors.need(storage, graph_.lastVersion(storage));
    }
    std::vector<bool> needed(graph_.nodes().size(), false);
    for (size_t i = needed.size(); i > 0; --i) {
      const ir::NodeId node(i - 1);
      needed[i - 1] = isUpdate(node) || ancestors.isNeeded(node);
      if (needed[i - 1]) ancestors.needInputsOf(node);
    }
    return needed;
  }

  ir::Phase phaseOf(ir::NodeId node, ir::Phase before) const {
    if (isUpdate(node)) return ir::Phase::kOptimizer;
    if (facts_.forward[node.index()]) return ir::Phase::kForward;
    if (readsUpdates(node) || readsSettingsAlone(node)) return ir::Phase::kOptimizer;
    return backward_[node.index()] ? ir::Phase::kBackward : before;
  }

  bool readsUpdates(ir::NodeId node) const {
    return llvm::any_of(graph_.accesses(node), [&](const ir::Access& access) {
      return access.reads() &&
             (fromOptimizer_[access.storage.index()] || facts_.rates[access.storage.index()]);
    });
  }

  bool readsSettingsAlone(ir::NodeId node) const {
    bool readsAny = false;
    for (const ir::Access& access : graph_.accesses(node)) {
      if (!access.reads()) continue;
      if (!fromSettings_[access.storage.index()]) return false;
      readsAny = true;
    }
    return readsAny;
  }

  void note(ir::NodeId node, ir::Phase phase) {
    const bool settings = readsSettingsAlone(node);
    for (const ir::Access& access : graph_.accesses(node)) {
      if (!access.writes()) continue;
      fromOptimizer_[access.storage.index()] = phase == ir::Phase::kOptimizer;
      if (!facts_.settings[access.storage.index()]) {
        fromSettings_[access.storage.index()] = settings;
      }
    }
  }

  const ir::Graph& graph_;
  const PhaseFacts& facts_;
  std::vector<bool> backward_;       // by node
  std::vector<bool> fromSettings_;   // by storage: what it holds by now
  std::vector<bool> fromOptimizer_;  // likewise
};

}  // namespace

std::vector<bool> findAncestors(const ir::Graph& graph, llvm::ArrayRef<ir::ValueId> values) {
  AncestorFinder ancestors(graph);
  for (const ir::ValueId value : values) {
    const ir::StorageId storage = graph.value(value).storage;
    ancestors.need(storage, graph.lastVersion(storage));
  }
  std::vector<bool> found(graph.nodes().size(), false);
  for (size_t i = found.size(); i > 0; --i) {
    const ir::NodeId node(i - 1);
    found[i - 1] = ancestors.isNeeded(node);
    if (found[i - 1]) ancestors.needInputsOf(node);
  }
  return found;
}

std::vector<ir::Phase> findPhases(const ir::Graph& graph, const PhaseFacts& facts) {
  return PhaseFinder(graph, facts).find();
}

}  // namespace stowage::runtime
