// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/defer_updates.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/op_table.h"
#include "passes/normalise/graph_edit.h"

namespace stowage::passes {

namespace {

/// On the host an update belongs to its step.
bool isOptimizers(const ir::Node& node) {
  return node.phase == ir::Phase::kOptimizer && !node.onHost;
}

/// State that a step gives new bytes without reading the old ones: "" if there is none.
std::string findOverwrittenState(const ir::Graph& graph) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      const ir::Storage& storage = graph.storage(access.storage);
      if (storage.persistent && access.writes() && access.whole && !access.reads()) {
        return storage.name;
      }
    }
  }
  return "";
}

/// By storage: parameters whose update comes after all of backward. None, if most of what the
/// optimizer updates does not: then the order has found them places beside backward.
std::vector<bool> findHeldParameters(const ir::Graph& graph) {
  size_t end = graph.nodes().size();
  while (end > 0 && graph.nodes()[end - 1].phase != ir::Phase::kBackward) --end;
  std::vector<bool> isHeld(graph.storages().size(), false);
  Bytes updated;
  Bytes held;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      const ir::Storage& storage = graph.storage(access.storage);
      const bool isLast = access.writtenVersion == graph.lastVersion(access.storage);
      if (storage.role != ir::Role::kParameter || !access.writes() || !isLast) continue;
      updated += storage.bytes;
      if (i < end) continue;
      isHeld[access.storage.index()] = true;
      held += storage.bytes;
    }
  }
  if (held + held < updated) isHeld.assign(isHeld.size(), false);
  return isHeld;
}

/// By node: runs in the next step.
class DeferredNodes {
 public:
  DeferredNodes(const ir::Graph& graph, std::vector<bool> isHeld)
      : graph_(graph),
        isHeld_(std::move(isHeld)),
        isDeferred_(graph.nodes().size(), false),
        isTouchedLater_(graph.storages().size(), false),
        isWrittenLater_(graph.storages().size(), false) {}

  std::vector<bool> find() && {
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const ir::NodeId id(i);
      isDeferred_[i] = mayWait(id) && nothingComesLater(id);
      if (!isDeferred_[i]) noteAccesses(id);
    }
    dropWithoutUpdate();
    return std::move(isDeferred_);
  }

 private:
  bool mayWait(ir::NodeId id) const {
    const ir::Node& node = graph_.node(id);
    if (!isOptimizers(node) || keepsOrder(node)) return false;
    return llvm::all_of(graph_.accesses(id), [&](const ir::Access& access) {
      const ir::Storage& storage = graph_.storage(access.storage);
      const bool isOther = storage.role == ir::Role::kParameter && access.writes() &&
                           !isHeld_[access.storage.index()];
      return !isOther && !storage.output && storage.role != ir::Role::kInput &&
             storage.role != ir::Role::kRng;
    });
  }

  /// Of this step, without what is deferred as well.
  bool nothingComesLater(ir::NodeId id) const {
    return llvm::none_of(graph_.accesses(id), [&](const ir::Access& access) {
      const size_t storage = access.storage.index();
      return access.writes() ? isTouchedLater_[storage] : isWrittenLater_[storage];
    });
  }

  void noteAccesses(ir::NodeId id) {
    for (const ir::Access& access : graph_.accesses(id)) {
      isTouchedLater_[access.storage.index()] = true;
      if (access.writes()) isWrittenLater_[access.storage.index()] = true;
    }
  }

  /// What could wait but has nothing to do with an update that waits runs in its own step.
  void dropWithoutUpdate() {
    for (bool grows = true; grows;) {
      grows = spread();
    }
    for (size_t i = 0; i < isDeferred_.size(); ++i) isDeferred_[i] = isDeferred_[i] && isKept_[i];
  }

  bool spread() {
    const bool isFirst = isKept_.empty();
    isKept_.resize(isDeferred_.size(), false);
    isOfKept_.resize(graph_.storages().size(), false);
    bool grows = false;
    for (size_t i = 0; i < isDeferred_.size(); ++i) {
      if (!isDeferred_[i] || isKept_[i]) continue;
      const ir::NodeId id(i);
      if (!(isFirst && writesHeld(id)) && !meetsKept(id)) continue;
      isKept_[i] = grows = true;
      for (const ir::Access& access : graph_.accesses(id)) {
        // One more reader of what no deferred node writes is no reason to wait.
        if (isWrittenByDeferred(access.storage)) isOfKept_[access.storage.index()] = true;
      }
    }
    return grows;
  }

  bool writesHeld(ir::NodeId id) const {
    return llvm::any_of(graph_.accesses(id), [&](const ir::Access& access) {
      return access.writes() && isHeld_[access.storage.index()];
    });
  }

  bool meetsKept(ir::NodeId id) const {
    return llvm::any_of(graph_.accesses(id), [&](const ir::Access& access) {
      return isOfKept_[access.storage.index()];
    });
  }

  bool isWrittenByDeferred(ir::StorageId storage) {
    if (writtenByDeferred_.empty()) {
      writtenByDeferred_.assign(graph_.storages().size(), false);
      for (size_t i = 0; i < isDeferred_.size(); ++i) {
        if (!isDeferred_[i]) continue;
        for (const ir::Access& access : graph_.accesses(ir::NodeId(i))) {
          if (access.writes()) writtenByDeferred_[access.storage.index()] = true;
        }
      }
    }
    return writtenByDeferred_[storage.index()];
  }

  const ir::Graph& graph_;
  std::vector<bool> isHeld_;
  std::vector<bool> isDeferred_;
  std::vector<bool> isTouchedLater_;  // by nodes that are not deferred
  std::vector<bool> isWrittenLater_;
  std::vector<bool> isKept_;
  std::vector<bool> isOfKept_;
  std::vector<bool> writtenByDeferred_;
};

/// The new order: each deferred node as late as the nodes of the next step allow.
class DeferredOrder {
 public:
  DeferredOrder(const ir::Graph& graph, const std::vector<bool>& isDeferred)
      : graph_(graph), isDeferred_(isDeferred), next_(graph.storages().size()) {}

  std::vector<ir::NodeId> make() {
    noteOtherNodes();
    std::vector<std::vector<ir::NodeId>> before(isDeferred_.size() + 1);  // in reverse
    for (size_t i = isDeferred_.size(); i-- > 0;) {
      if (!isDeferred_[i]) continue;
      const ir::NodeId id(i);
      const size_t slot = latest(id);
      before[slot].push_back(id);
      note(id, slot);
    }
    std::vector<ir::NodeId> order;
    for (size_t i = 0; i <= isDeferred_.size(); ++i) {
      order.insert(order.end(), before[i].rbegin(), before[i].rend());
      if (i < isDeferred_.size() && !isDeferred_[i]) order.push_back(ir::NodeId(i));
    }
    return order;
  }

 private:
  /// Positions of the nodes that must come after.
  struct NextAccess {
    size_t any = SIZE_MAX;
    size_t write = SIZE_MAX;
  };

  void note(ir::NodeId id, size_t slot) {
    for (const ir::Access& access : graph_.accesses(id)) {
      NextAccess& next = next_[access.storage.index()];
      next.any = std::min(next.any, slot);
      if (access.writes()) next.write = std::min(next.write, slot);
    }
  }

  void noteOtherNodes() {
    for (size_t i = 0; i < isDeferred_.size(); ++i) {
      if (!isDeferred_[i]) note(ir::NodeId(i), i);
    }
  }

  size_t latest(ir::NodeId id) const {
    size_t slot = isDeferred_.size();
    for (const ir::Access& access : graph_.accesses(id)) {
      const NextAccess& next = next_[access.storage.index()];
      slot = std::min(slot, access.writes() ? next.any : next.write);
    }
    return slot;
  }

  const ir::Graph& graph_;
  const std::vector<bool>& isDeferred_;
  std::vector<NextAccess> next_;
};

/// By storage: made by the step and read by what is deferred.
std::vector<bool> findPending(const ir::Graph& graph, const std::vector<bool>& isDeferred) {
  std::vector<bool> isPending(graph.storages().size(), false);
  std::vector<bool> isMadeByDeferred(graph.storages().size(), false);
  for (size_t i = 0; i < isDeferred.size(); ++i) {
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      const size_t storage = access.storage.index();
      if (!isLocal(graph.storages()[storage]) || !isDeferred[i]) continue;
      if (!access.reads() && access.writtenVersion == 1) isMadeByDeferred[storage] = true;
      isPending[storage] = !isMadeByDeferred[storage];
    }
  }
  return isPending;
}

ir::Graph withDeferred(const ir::Graph& graph, const std::vector<bool>& isDeferred) {
  ir::GraphBuilder builder(graph);
  const std::vector<bool> isPending = findPending(graph, isDeferred);
  for (size_t i = 0; i < isPending.size(); ++i) {
    if (!isPending[i]) continue;
    builder.storage(ir::StorageId(i)).role = ir::Role::kPending;
    builder.storage(ir::StorageId(i)).persistent = true;
  }
  for (const ir::NodeId id : DeferredOrder(graph, isDeferred).make()) {
    ir::Node node = graph.node(id);
    if (isDeferred[id.index()]) node.phase = ir::Phase::kDeferred;
    builder.addNode(std::move(node));
  }
  return std::move(builder).finish();
}

}  // namespace

ir::Expected<PassReport> DeferUpdates::run(PassState& state) const {
  const bool isDone = llvm::any_of(
      state.graph.nodes(), [](const ir::Node& node) { return node.phase == ir::Phase::kDeferred; });
  if (isDone) return PassReport{.counters = {{"deferred", 0}}};
  const std::string overwritten = findOverwrittenState(state.graph);
  if (!overwritten.empty()) {
    return PassReport{.counters = {{"deferred", 0}},
                      .remarks = {"the step overwrites '" + overwritten + "' without reading it"}};
  }
  const std::vector<bool> isDeferred =
      DeferredNodes(state.graph, findHeldParameters(state.graph)).find();
  const int64_t count = llvm::count(isDeferred, true);
  if (count > 0) state.graph = withDeferred(state.graph, isDeferred);
  return PassReport{.changed = count > 0, .counters = {{"deferred", count}}};
}

}  // namespace stowage::passes
