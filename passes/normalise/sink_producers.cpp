// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/sink_producers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "passes/normalise/graph_edit.h"

namespace stowage::passes {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// Goes through the step backwards, so that a chain of producers sinks as one. `place` of a node is
/// its own position, or the position of the node it was moved in front of.
class SinkSearch {
 public:
  explicit SinkSearch(const ir::Graph& graph)
      : graph_(graph),
        place_(graph.nodes().size()),
        nextUse_(graph.storages().size(), kNever),
        nextWrite_(graph.storages().size(), kNever),
        lastUse_(graph.storages().size(), -1),
        maker_(graph.storages().size()) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
        if (access.writtenVersion == 1) maker_[access.storage.index()] = ir::NodeId(i);
      }
    }
  }

  std::vector<int64_t> run() {
    for (size_t i = place_.size(); i-- > 0;) {
      const ir::NodeId id(i);
      place_[i] = static_cast<int64_t>(i);
      const int64_t target = findTarget(id);
      if (target > place_[i] + 1 && pays(id, target)) place_[i] = target;
      remember(id);
    }
    return std::move(place_);
  }

 private:
  bool isPureProducer(ir::NodeId id) const {
    if (keepsOrder(graph_.node(id))) return false;
    const auto accesses = graph_.accesses(id);
    return std::all_of(accesses.begin(), accesses.end(), [&](const ir::Access& access) {
      if (!access.writes()) return true;
      return access.writtenVersion <= 1 && access.whole && !access.reads() &&
             isLocal(graph_.storage(access.storage));
    });
  }

  /// The place of the first node that uses a result, unless something in between writes what the
  /// node reads: then no move. kNever is no target: nobody uses it.
  int64_t findTarget(ir::NodeId id) const {
    if (!isPureProducer(id)) return -1;
    int64_t target = kNever;
    int64_t limit = kNever;
    for (const ir::Access& access : graph_.accesses(id)) {
      if (access.writes()) target = std::min(target, nextUse_[access.storage.index()]);
      if (access.reads()) limit = std::min(limit, nextWrite_[access.storage.index()]);
    }
    return target == kNever || limit < target ? -1 : target;
  }

  /// Bytes whose life gets shorter against bytes whose life gets longer.
  bool pays(ir::NodeId id, int64_t target) const {
    Bytes shorter;
    Bytes longer;
    for (const ir::Access& access : graph_.accesses(id)) {
      if (access.writes()) shorter += graph_.storage(access.storage).bytes;
      if (access.reads() && waits(access.storage, target)) {
        longer += graph_.storage(access.storage).bytes;
      }
    }
    return longer < shorter;
  }

  /// Would an operand that is needed at `target` live longer for it? Not if it lives until then
  /// anyway, and not if its own producer can follow down: one that reads nothing that dies.
  bool waits(ir::StorageId operand, int64_t target) const {
    const bool dies = !graph_.storage(operand).persistent && !graph_.storage(operand).output;
    if (!dies || lastUse_[operand.index()] >= target) return false;
    const ir::NodeId maker = maker_[operand.index()];
    if (!maker.isValid() || !isPureProducer(maker)) return true;
    const auto accesses = graph_.accesses(maker);
    return std::any_of(accesses.begin(), accesses.end(), [&](const ir::Access& access) {
      return access.reads() && (!graph_.storage(access.storage).persistent ||
                                nextWrite_[access.storage.index()] < target);
    });
  }

  void remember(ir::NodeId id) {
    const int64_t place = place_[id.index()];
    for (const ir::Access& access : graph_.accesses(id)) {
      const size_t storage = access.storage.index();
      nextUse_[storage] = std::min(nextUse_[storage], place);
      if (access.writes()) nextWrite_[storage] = std::min(nextWrite_[storage], place);
      lastUse_[storage] = std::max(lastUse_[storage], place);
    }
  }

  const ir::Graph& graph_;
  std::vector<int64_t> place_;
  std::vector<int64_t> nextUse_;
  std::vector<int64_t> nextWrite_;
  std::vector<int64_t> lastUse_;
  std::vector<ir::NodeId> maker_;  // by storage: the node that makes its first version
};

/// Moved nodes stand right before the node whose place they took, in program order.
std::vector<ir::NodeId> makeOrder(const std::vector<int64_t>& place) {
  std::vector<ir::NodeId> order;
  for (size_t i = 0; i < place.size(); ++i) order.push_back(ir::NodeId(i));
  // Stable: the node at home at a place has the largest number of all that go there.
  std::stable_sort(order.begin(), order.end(),
                   [&](ir::NodeId a, ir::NodeId b) { return place[a.index()] < place[b.index()]; });
  return order;
}

}  // namespace

ir::Expected<PassReport> SinkProducers::run(PassState& state) const {
  const std::vector<int64_t> place = SinkSearch(state.graph).run();
  int64_t sunk = 0;
  for (size_t i = 0; i < place.size(); ++i) sunk += place[i] != static_cast<int64_t>(i) ? 1 : 0;
  const std::vector<ir::NodeId> order = makeOrder(place);
  const bool changed = !std::is_sorted(order.begin(), order.end());
  if (changed) state.graph = withOrder(state.graph, order);
  return PassReport{.changed = changed, .counters = {{"sunk", changed ? sunk : 0}}};
}

}  // namespace stowage::passes
