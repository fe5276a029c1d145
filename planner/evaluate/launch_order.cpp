// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/launch_order.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/graph/collectives.h"
#include "ir/graph/op_table.h"
#include "ir/graph/random_ops.h"
#include "planner/evaluate/launch_loads.h"

namespace stowage::planner {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;

/// How long before its reader a gather begins, of the time that it takes: estimates are not exact.
constexpr int64_t kAheadParts = 3;
constexpr int64_t kAheadOf = 2;

/// The launches up to a node's own, with the recomputes that it needs.
struct NodeLaunches {
  int64_t start = 0;  // of the first, since the step's begin, if compute waits for nothing
  int64_t load = 0;   // highest bytes on the device
};

/// A gather that may begin before its reader.
struct Gather {
  ir::NodeId node;
  ir::StorageId made;    // valid: a recompute of its bytes
  int64_t at = 0;        // the node before which it is, or whose recomputes it is among
  int64_t earliest = 0;  // the first node before which it may be
  int64_t latest = 0;    // when it should begin
  int64_t bytes = 0;     // on the device from its begin on
};

class CollectiveOrder {
 public:
  CollectiveOrder(const GapTable& table, const Expansion& inOrder, int64_t limit)
      : table_(table),
        graph_(table.problem().graph),
        x_(inOrder),
        limit_(limit),
        nodes_(graph_.nodes().size()),
        gathersBefore_(graph_.nodes().size()),
        isEarly_(graph_.nodes().size(), false),
        readyAt_(graph_.storages().size(), 0),
        heldTouch_(graph_.storages().size(), 0) {}

  LaunchOrder run() {
    findNodes();
    findGathers();
    placeGathers();
    for (size_t i = 0; i < nodes_.size(); ++i) add(i);
    releaseUpTo(held_.size());
    return std::move(order_);
  }

 private:
  // --- the step in the graph's order ---

  void findNodes() {
    const std::vector<int64_t> loads = computeLoads(table_, x_);
    nodeOf_.assign(x_.launches.size(), 0);
    int64_t time = 0;
    size_t launch = 1;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      NodeLaunches& node = nodes_[i];
      node.start = time;
      if (graph_.nodes()[i].onHost) continue;
      bool isOwn = false;
      for (; !isOwn && launch < x_.launches.size(); ++launch) {
        const Launch& launched = x_.launches[launch];
        nodeOf_[launch] = static_cast<int64_t>(i);
        node.load = std::max(node.load, loads[launch]);
        time += table_.nodeTime(launched.node.index());
        isOwn = launched.recompute == 0;
      }
    }
    length_ = time;
  }

  llvm::ArrayRef<ir::Touch> touches(ir::StorageId storage) const {
    return table_.problem().lives[storage.index()].touches;
  }
  /// The node after the last one before `node` that touches the storage.
  int64_t afterTouch(ir::StorageId storage, int64_t node, bool writesOnly) const {
    int64_t after = 0;
    for (const ir::Touch& touch : touches(storage)) {
      if (touch.position >= node) break;
      if (touch.writes || !writesOnly) after = touch.position + 1;
    }
    return after;
  }

  // Backwards: what is enqueued later must have the link in time.
  void findGathers() {
    int64_t next = kNever;
    int64_t readAt = length_;
    for (size_t i = x_.launches.size(); i-- > 1;) {
      const Launch& launch = x_.launches[i];
      const ir::Node& node = graph_.node(launch.node);
      const int64_t start = startOf(i);
      if (ir::isGather(node)) {
        next = std::min(next, readAt) - timeOnLink(launch) * kAheadParts / kAheadOf;
        if (mayBeEarly(launch)) gathers_.push_back(makeGather(i, next));
      } else if (ir::isCollective(node) && next < start + timeOnLink(launch)) {
        next = std::min(next, start);
      }
      readAt = start;
    }
    std::reverse(gathers_.begin(), gathers_.end());
  }

  /// That of its node, whose recomputes come first.
  int64_t startOf(size_t launch) const {
    return nodes_[static_cast<size_t>(nodeOf_[launch])].start;
  }
  int64_t timeOnLink(const Launch& launch) const {
    return table_.collectiveTime(launch.node.index());
  }

  ir::StorageId madeBy(const Launch& launch) const {
    return x_.liveRanges[static_cast<size_t>(launch.out.front())].storage;
  }
  /// Not a recompute for one reader alone, beside a newer version.
  bool mayBeEarly(const Launch& launch) const {
    return launch.recompute == 0 ||
           llvm::is_contained(x_.history[madeBy(launch).index()], launch.out.front());
  }

  Gather makeGather(size_t launchIndex, int64_t latest) const {
    const Launch& launch = x_.launches[launchIndex];
    const ir::StorageId made = madeBy(launch);
    const bool isRecompute = launch.recompute != 0;
    Gather gather{.node = launch.node, .at = nodeOf_[launchIndex], .latest = latest};
    if (isRecompute) gather.made = made;
    gather.bytes = table_.bytes(made);
    gather.earliest = afterTouch(made, gather.at, /*writesOnly=*/false);
    for (const int32_t index : launch.in) {
      const LiveRange& range = x_.liveRanges[static_cast<size_t>(index)];
      gather.earliest = std::max(gather.earliest,
                                 afterTouch(range.storage, gather.at, /*writesOnly=*/isRecompute));
      const bool comesForIt = range.begin == static_cast<int32_t>(launchIndex);
      if (comesForIt) gather.bytes += table_.bytes(range.storage);
    }
    return gather;
  }

  // --- the order ---

  void placeGathers() {
    std::vector<int64_t> early(nodes_.size(), 0);  // bytes of gathers, by node
    int64_t before = 0;
    for (const Gather& gather : gathers_) {
      int64_t place =
          std::min(std::max({gather.earliest, before, lastBegun(gather.latest)}), gather.at);
      for (int64_t node = gather.at; node-- > place;) {
        const auto index = static_cast<size_t>(node);
        if (nodes_[index].load + early[index] + gather.bytes > limit_) place = node + 1;
      }
      for (int64_t node = place; node < gather.at; ++node) {
        early[static_cast<size_t>(node)] += gather.bytes;
      }
      before = place;
      if (place == gather.at) continue;
      gathersBefore_[static_cast<size_t>(place)].push_back(gather);
      if (!gather.made.isValid()) isEarly_[gather.node.index()] = true;
    }
  }

  /// The last node that has begun at a time.
  int64_t lastBegun(int64_t time) const {
    const auto after = llvm::upper_bound(
        nodes_, time, [](int64_t t, const NodeLaunches& node) { return t < node.start; });
    return std::max<int64_t>(0, after - nodes_.begin() - 1);
  }

  void add(size_t index) {
    now_ = nodes_[index].start;
    while (released_ < held_.size() && held_[released_].second <= now_) releaseUpTo(released_ + 1);
    for (const Gather& gather : gathersBefore_[index]) {
      releaseTouching(gather.node);
      order_.push_back({gather.made.isValid() ? ir::NodeId() : gather.node, gather.made});
      noteCollective(gather.node);
    }
    const ir::NodeId node(index);
    if (isEarly_[index]) return;
    if (const int64_t ready = readyTime(node); ready > now_ && mayBeLate(node)) {
      hold(node, ready);
      return;
    }
    releaseTouching(node);
    order_.push_back({node, {}});
    if (ir::isCollective(graph_.node(node))) noteCollective(node);
  }

  void noteCollective(ir::NodeId node) {
    linkFree_ = std::max(linkFree_, now_) + table_.collectiveTime(node.index());
    for (const ir::Access& access : graph_.accesses(node)) {
      if (access.writes()) readyAt_[access.storage.index()] = linkFree_;
    }
  }

  int64_t readyTime(ir::NodeId node) const {
    int64_t ready = 0;
    for (const ir::Access& access : graph_.accesses(node)) {
      if (access.reads()) ready = std::max(ready, readyAt_[access.storage.index()]);
    }
    return ready;
  }
  bool mayBeLate(ir::NodeId id) const {
    const ir::Node& node = graph_.node(id);
    if (node.op == ir::kAddParts) return true;
    return node.phase == ir::Phase::kOptimizer && !node.onHost && !ir::isCollective(node) &&
           ir::lookUpOp(node.op).known && !ir::drawsRandomNumbers(node);
  }

  void hold(ir::NodeId node, int64_t ready) {
    held_.emplace_back(node, ready);
    for (const ir::Access& access : graph_.accesses(node)) {
      heldTouch_[access.storage.index()] = held_.size();
      if (access.writes()) readyAt_[access.storage.index()] = ready;
    }
  }
  void releaseUpTo(size_t end) {
    for (; released_ < end; ++released_) order_.push_back({held_[released_].first, {}});
  }
  /// Accesses of one storage keep their order.
  void releaseTouching(ir::NodeId node) {
    for (const ir::Access& access : graph_.accesses(node)) {
      releaseUpTo(std::max(released_, heldTouch_[access.storage.index()]));
    }
  }

  const GapTable& table_;
  const ir::Graph& graph_;
  const Expansion& x_;
  int64_t limit_;
  std::vector<NodeLaunches> nodes_;
  std::vector<int64_t> nodeOf_;  // by launch
  int64_t length_ = 0;
  std::vector<Gather> gathers_;
  std::vector<std::vector<Gather>> gathersBefore_;  // by node
  std::vector<bool> isEarly_;                       // by node: a gather among those
  LaunchOrder order_;
  int64_t now_ = 0;
  int64_t linkFree_ = 0;
  std::vector<int64_t> readyAt_;                      // by storage
  std::vector<std::pair<ir::NodeId, int64_t>> held_;  // that wait for a collective, until when
  size_t released_ = 0;                               // of those
  std::vector<size_t> heldTouch_;  // by storage: how many are held up to the last that touches it
};

}  // namespace

LaunchOrder orderAroundCollectives(const GapTable& table, const Expansion& inOrder, int64_t limit) {
  return CollectiveOrder(table, inOrder, limit).run();
}

std::vector<ComputePosition> findLaunchEnds(const GapTable& table, const Expansion& expansion,
                                            const std::vector<int64_t>& starts) {
  std::vector<ComputePosition> ends(expansion.launches.size());
  int64_t linkFree = 0;
  for (size_t i = 1; i < ends.size(); ++i) {
    const size_t node = expansion.launches[i].node.index();
    ends[i] = {static_cast<int64_t>(i), table.nodeTime(node)};
    if (starts.empty() || table.collectiveTime(node) == 0) continue;
    linkFree = std::max(linkFree, starts[i]) + table.collectiveTime(node);
    const auto after = std::upper_bound(starts.begin(), starts.end(), linkFree);
    const int64_t last = after - starts.begin() - 1;
    const ComputePosition end{last, linkFree - starts[static_cast<size_t>(last)]};
    ends[i] = std::max(ends[i], end);
  }
  return ends;
}

}  // namespace stowage::planner
