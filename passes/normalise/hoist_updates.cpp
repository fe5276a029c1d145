// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/hoist_updates.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "passes/normalise/graph_edit.h"

namespace stowage::passes {

namespace {

/// Slot k: right after node k, where k is no node of the optimizer. kAtTheStart: before all.
constexpr int64_t kAtTheStart = -1;

/// Where a node may go at the earliest, and which node holds it there.
struct Place {
  int64_t slot = kAtTheStart;
  ir::NodeId because;
};

/// Computes the earliest slot of every node, in program order: an optimizer node never leaves the
/// order of what it depends on, since each of those has its slot already.
class SlotSearch {
 public:
  explicit SlotSearch(const ir::Graph& graph) : graph_(graph), last_(graph.storages().size()) {}

  std::vector<Place> run() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::NodeId id(i);
      const ir::Node& node = graph_.node(id);
      Place place = earliest(id);
      if (node.phase != ir::Phase::kOptimizer) place = {static_cast<int64_t>(i), {}};
      places_.push_back(place);
      remember(id);
    }
    return std::move(places_);
  }

 private:
  /// The latest-placed reader since the last write, and the last writer, of a storage.
  struct LastAccess {
    ir::NodeId writer;
    ir::NodeId reader;
  };

  void waitFor(ir::NodeId other, Place& place) const {
    if (!other.isValid() || places_[other.index()].slot < place.slot) return;
    place = {places_[other.index()].slot, other};
  }

  Place earliest(ir::NodeId id) const {
    Place place;
    if (keepsOrder(graph_.node(id))) waitFor(lastOrdered_, place);
    for (const ir::Access& access : graph_.accesses(id)) {
      const LastAccess& last = last_[access.storage.index()];
      waitFor(last.writer, place);
      if (access.writes()) waitFor(last.reader, place);
    }
    return place;
  }

  void remember(ir::NodeId id) {
    if (keepsOrder(graph_.node(id))) lastOrdered_ = id;
    for (const ir::Access& access : graph_.accesses(id)) {
      LastAccess& last = last_[access.storage.index()];
      if (access.writes()) {
        last = {id, {}};
      } else if (!last.reader.isValid() ||
                 places_[last.reader.index()].slot <= places_[id.index()].slot) {
        last.reader = id;
      }
    }
  }

  const ir::Graph& graph_;
  std::vector<LastAccess> last_;
  ir::NodeId lastOrdered_;
  std::vector<Place> places_;
};

/// Puts what waits for nothing of the step right before what first needs it, or at the end: at the
/// begin it would only take bytes, and numbers that each step works out anew would be needed there.
/// What waits for a gradient goes to what first needs it too: its states need not be there earlier.
/// But nothing that may run in backward goes to its end: a gradient would have to come back for it.
/// Backwards over the nodes, since what needs a node comes after it.
class SlotDelay {
 public:
  SlotDelay(const ir::Graph& graph, std::vector<Place>& places)
      : graph_(graph), places_(places), next_(graph.storages().size()) {}

  void run() {
    findSlots();
    for (size_t i = places_.size(); i-- > 0;) {
      const ir::NodeId id(i);
      if (isOptimizers(id)) delay(id, places_[i].slot);
      remember(id);
    }
  }

 private:
  static constexpr int64_t kNever = INT64_MAX;
  /// Slots that a node must not lie behind, of a storage's accesses after it.
  struct NextAccess {
    int64_t writer = kNever;
    int64_t reader = kNever;  // before that writer
  };

  bool isOptimizers(ir::NodeId id) const { return graph_.node(id).phase == ir::Phase::kOptimizer; }

  void findSlots() {
    for (size_t i = 0; i < places_.size(); ++i) {
      slotBefore_.push_back(end_);
      if (!isOptimizers(ir::NodeId(i))) end_ = static_cast<int64_t>(i);
    }
  }

  void delay(ir::NodeId id, int64_t& slot) const {
    const int64_t last = latest(id);
    if (slot == kAtTheStart || last < end_) slot = last;
  }

  int64_t latest(ir::NodeId id) const {
    int64_t slot = end_;
    if (keepsOrder(graph_.node(id))) slot = std::min(slot, nextOrdered_);
    for (const ir::Access& access : graph_.accesses(id)) {
      const NextAccess& next = next_[access.storage.index()];
      slot = std::min(slot, next.writer);
      if (access.writes()) slot = std::min(slot, next.reader);
    }
    return slot;
  }

  void remember(ir::NodeId id) {
    const int64_t slot = isOptimizers(id) ? places_[id.index()].slot : slotBefore_[id.index()];
    if (keepsOrder(graph_.node(id))) nextOrdered_ = slot;
    for (const ir::Access& access : graph_.accesses(id)) {
      NextAccess& next = next_[access.storage.index()];
      if (access.writes()) next = {.writer = slot, .reader = kNever};
      if (access.reads()) next.reader = std::min(next.reader, slot);
    }
  }

  const ir::Graph& graph_;
  std::vector<Place>& places_;
  std::vector<int64_t> slotBefore_;  // by node
  int64_t end_ = kAtTheStart;        // the last slot
  int64_t nextOrdered_ = kNever;
  std::vector<NextAccess> next_;
};

std::vector<ir::NodeId> makeOrder(const ir::Graph& graph, const std::vector<Place>& places) {
  std::vector<ir::NodeId> order;
  for (size_t i = 0; i < places.size(); ++i) order.push_back(ir::NodeId(i));
  std::stable_sort(order.begin(), order.end(), [&](ir::NodeId a, ir::NodeId b) {
    const int64_t slotA = places[a.index()].slot;
    const int64_t slotB = places[b.index()].slot;
    if (slotA != slotB) return slotA < slotB;
    // The node that gives a slot its number is the first of it.
    return graph.node(a).phase != ir::Phase::kOptimizer &&
           graph.node(b).phase == ir::Phase::kOptimizer;
  });
  return order;
}

bool isUpdate(const ir::Graph& graph, ir::NodeId id) {
  if (graph.node(id).phase != ir::Phase::kOptimizer) return false;
  const auto accesses = graph.accesses(id);
  return std::any_of(accesses.begin(), accesses.end(), [&](const ir::Access& access) {
    const ir::Role role = graph.storage(access.storage).role;
    return access.writes() && (role == ir::Role::kParameter || role == ir::Role::kMaster);
  });
}

/// The last node that is no node of the optimizer; -1 if all are.
int64_t lastOtherNode(const ir::Graph& graph) {
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    if (graph.nodes()[i].phase != ir::Phase::kOptimizer) return static_cast<int64_t>(i);
  }
  return -1;
}

struct UpdateCounts {
  int64_t all = 0;
  int64_t held = 0;  // still after the last other node
  ir::NodeId firstHeld;
};

UpdateCounts countUpdates(const ir::Graph& graph, const std::vector<Place>& places) {
  UpdateCounts counts;
  const int64_t end = lastOtherNode(graph);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!isUpdate(graph, ir::NodeId(i))) continue;
    ++counts.all;
    // What waits for nothing is not held, wherever it was put.
    if (places[i].slot < end || !places[i].because.isValid()) continue;
    ++counts.held;
    if (!counts.firstHeld.isValid()) counts.firstHeld = ir::NodeId(i);
  }
  return counts;
}

/// Along the chain of nodes that hold `held` back: the one that joins the most storages. Clipping
/// shows up as the norm over all gradients.
ir::NodeId findHolder(const ir::Graph& graph, const std::vector<Place>& places, ir::NodeId held) {
  ir::NodeId holder;
  size_t widest = 0;
  for (ir::NodeId id = places[held.index()].because;
       id.isValid() && graph.node(id).phase == ir::Phase::kOptimizer && !isUpdate(graph, id);
       id = places[id.index()].because) {
    if (graph.accesses(id).size() < widest) continue;
    widest = graph.accesses(id).size();
    holder = id;
  }
  return holder;
}

/// Gradients that a node of the last slot still reads.
Bytes heldGradientBytes(const ir::Graph& graph, const std::vector<Place>& places) {
  const int64_t end = lastOtherNode(graph);
  std::vector<bool> held(graph.storages().size(), false);
  Bytes bytes;
  for (size_t i = 0; i < places.size(); ++i) {
    if (graph.nodes()[i].phase != ir::Phase::kOptimizer || places[i].slot < end) continue;
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      const size_t storage = access.storage.index();
      if (!access.reads() || held[storage]) continue;
      if (graph.storages()[storage].role != ir::Role::kGradient) continue;
      held[storage] = true;
      bytes += graph.storages()[storage].bytes;
    }
  }
  return bytes;
}

std::vector<std::string> explain(const ir::Graph& graph, const std::vector<Place>& places,
                                 const UpdateCounts& counts) {
  // The last bucket has the last gradient of the backward: it has nowhere to go.
  if (counts.held < 2) return {};
  const ir::NodeId holder = findHolder(graph, places, counts.firstHeld);
  if (!holder.isValid()) return {};
  return {graph.describeNode(holder) + " holds " + formatBytes(heldGradientBytes(graph, places)) +
          " of gradients to the end of backward (" + std::to_string(counts.held) + " of " +
          std::to_string(counts.all) + " updates wait)"};
}

}  // namespace

ir::Expected<PassReport> HoistUpdates::run(PassState& state) const {
  std::vector<Place> places = SlotSearch(state.graph).run();
  SlotDelay(state.graph, places).run();
  const std::vector<ir::NodeId> order = makeOrder(state.graph, places);
  const UpdateCounts counts = countUpdates(state.graph, places);
  PassReport report{.changed = !std::is_sorted(order.begin(), order.end()),
                    .counters = {{"updates", counts.all}, {"held", counts.held}},
                    .remarks = explain(state.graph, places, counts)};
  if (report.changed) state.graph = withOrder(state.graph, order);
  return report;
}

}  // namespace stowage::passes
