// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/drop_dead.h"

#include <utility>

#include "passes/normalise/graph_edit.h"

namespace stowage::passes {

namespace {

/// Walks the step backwards with one fact per storage: are its bytes wanted later?
class EffectSearch {
 public:
  explicit EffectSearch(const ir::Graph& graph) : graph_(graph), wanted_(graph.storages().size()) {
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const ir::Storage& storage = graph.storages()[i];
      wanted_[i] = storage.persistent || storage.output;
    }
  }

  std::vector<bool> run() {
    std::vector<bool> hasEffect(graph_.nodes().size());
    for (size_t i = hasEffect.size(); i-- > 0;) {
      const ir::NodeId node(i);
      hasEffect[i] = keepsOrder(graph_.node(node)) || !isWithoutEffect(node);
      if (hasEffect[i]) demand(node);
    }
    return hasEffect;
  }

 private:
  /// A node that writes nothing at all is there for something else (an assertion, a host read).
  bool isWithoutEffect(ir::NodeId node) const {
    bool writes = false;
    for (const ir::Access& access : graph_.accesses(node)) {
      if (access.writes() && wanted_[access.storage.index()]) return false;
      writes = writes || access.writes();
    }
    return writes;
  }

  void demand(ir::NodeId node) {
    for (const ir::Access& access : graph_.accesses(node)) {
      // A whole write makes the earlier bytes unwanted; a partial one leaves the rest of them.
      if (access.writes() && access.whole) wanted_[access.storage.index()] = false;
      if (access.reads()) wanted_[access.storage.index()] = true;
    }
  }

  const ir::Graph& graph_;
  std::vector<bool> wanted_;
};

}  // namespace

ir::Expected<PassReport> DropDead::run(PassState& state) const {
  const ir::Graph& graph = state.graph;
  const std::vector<bool> hasEffect = EffectSearch(graph).run();
  std::vector<ir::Node> nodes;
  for (size_t i = 0; i < hasEffect.size(); ++i) {
    if (hasEffect[i]) nodes.push_back(graph.nodes()[i]);
  }
  const auto dropped = static_cast<int64_t>(hasEffect.size() - nodes.size());
  ir::Graph smaller = withoutUnused(withNodes(graph, std::move(nodes)));
  const auto storages = static_cast<int64_t>(graph.storages().size() - smaller.storages().size());
  const auto values = static_cast<int64_t>(graph.values().size() - smaller.values().size());
  if (dropped + storages + values > 0) state.graph = std::move(smaller);
  return PassReport{.changed = dropped + storages + values > 0,
                    .counters = {{"nodes", dropped}, {"storages", storages}, {"values", values}}};
}

}  // namespace stowage::passes
