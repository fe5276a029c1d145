// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/micro_batches.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace stowage::passes {

namespace {

/// Reads by forward and backward of what persistent storages held when the step began.
std::vector<MicroBatches::Read> findReads(const ir::Graph& graph) {
  std::vector<MicroBatches::Read> reads;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::NodeId id(i);
    if (ir::updatesModel(graph.node(id).phase)) continue;
    MicroBatches::Read read{.node = id, .storages = {}};
    for (const ir::Access& access : graph.accesses(id)) {
      if (access.writes() || access.readVersion != 0) continue;
      if (graph.storage(access.storage).persistent) read.storages.push_back(access.storage);
    }
    if (!read.storages.empty()) reads.push_back(std::move(read));
  }
  return reads;
}

std::vector<int64_t> countReads(const ir::Graph& graph, llvm::ArrayRef<MicroBatches::Read> reads) {
  std::vector<int64_t> counts(graph.storages().size(), 0);
  for (const MicroBatches::Read& read : reads) {
    for (const ir::StorageId storage : read.storages) ++counts[storage.index()];
  }
  return counts;
}

/// How often most of the bytes are read.
int64_t commonCount(const ir::Graph& graph, llvm::ArrayRef<int64_t> counts) {
  std::map<int64_t, Bytes> bytes;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) bytes[counts[i]] += graph.storages()[i].bytes;
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? 1 : most->first;
}

/// Reads of storages that each of so many micro-batches may read equally often.
std::vector<MicroBatches::Read> readsInParts(llvm::ArrayRef<MicroBatches::Read> reads,
                                             llvm::ArrayRef<int64_t> counts, int64_t parts) {
  std::vector<MicroBatches::Read> kept;
  for (MicroBatches::Read read : reads) {
    const auto isOther = [&](ir::StorageId id) { return counts[id.index()] % parts != 0; };
    read.storages.erase(std::remove_if(read.storages.begin(), read.storages.end(), isOther),
                        read.storages.end());
    if (!read.storages.empty()) kept.push_back(std::move(read));
  }
  return kept;
}

bool isRepeated(const ir::Graph& graph, const MicroBatches& batches) {
  if (batches.reads.size() % static_cast<size_t>(batches.count) != 0) return false;
  const auto each = static_cast<size_t>(batches.readsEach());
  for (size_t i = each; i < batches.reads.size(); ++i) {
    const MicroBatches::Read& read = batches.reads[i];
    const MicroBatches::Read& before = batches.reads[i - each];
    const ir::Node& node = graph.node(read.node);
    const ir::Node& nodeBefore = graph.node(before.node);
    if (read.storages != before.storages || node.op != nodeBefore.op ||
        node.phase != nodeBefore.phase) {
      return false;
    }
  }
  return true;
}

/// Chooses cuts by the nodes of the first micro-batch.
class CutSearch {
 public:
  CutSearch(const ir::Graph& graph, const MicroBatches& batches, llvm::ArrayRef<int64_t> places)
      : graph_(graph), batches_(batches), alive_(static_cast<size_t>(2 * batches.readsEach()) + 1) {
    findAlive(places);
  }

  std::vector<int64_t> run(Bytes least) const {
    std::vector<int64_t> cuts;
    std::optional<int64_t> cut = nextCut(0, least);
    for (; cut; cut = nextCut(*cut, least)) cuts.push_back(*cut);
    return cuts;
  }

 private:
  /// What a stretch reads.
  struct Stretch {
    std::set<ir::StorageId> storages;
    Bytes bytes;
    void add(const ir::Graph& graph, const MicroBatches::Read& read) {
      for (const ir::StorageId id : read.storages) {
        if (storages.insert(id).second) bytes += graph.storage(id).bytes;
      }
    }
  };

  /// Where the stretch that begins at `begin` ends; nothing: with the micro-batch.
  std::optional<int64_t> nextCut(int64_t begin, Bytes least) const {
    const int64_t end = 2 * batches_.readsEach();
    Stretch stretch;
    Bytes most;
    std::optional<int64_t> best;
    for (int64_t place = begin; place < end; ++place) {
      const Bytes alive = aliveAt(place);
      const bool isEnough = stretch.bytes > Bytes(0) && stretch.bytes >= std::max(least, alive);
      if (isEnough && !turnsAt(place) && (!best || alive < aliveAt(*best))) {
        if (!best) most = stretch.bytes * 2;
        best = place;
      }
      if (place % 2 == 1) stretch.add(graph_, readAt(place));
      if (best && stretch.bytes > most) break;
    }
    return best;
  }

  Bytes aliveAt(int64_t place) const { return alive_[static_cast<size_t>(place)]; }

  const MicroBatches::Read& readAt(int64_t place) const {
    return batches_.reads[static_cast<size_t>(place / 2)];
  }

  /// Between the last read of one phase and the first one of the other?
  bool turnsAt(int64_t place) const {
    const int64_t after = place / 2;
    if (after == 0 || after >= batches_.readsEach()) return false;
    return graph_.node(readAt(2 * after - 1).node).phase !=
           graph_.node(readAt(2 * after + 1).node).phase;
  }

  /// What is alive between two accesses of one phase. What forward keeps for backward is alive
  /// wherever a cut is.
  void findAlive(llvm::ArrayRef<int64_t> places) {
    const size_t end = batches_.reads[static_cast<size_t>(batches_.readsEach())].node.index();
    std::vector<std::optional<ir::NodeId>> before(graph_.storages().size());
    std::vector<Bytes> rises(alive_.size() + 1);
    std::vector<Bytes> falls(alive_.size() + 1);
    for (size_t i = 0; i < end; ++i) {
      const ir::NodeId id(i);
      for (const ir::Access& access : graph_.accesses(id)) {
        const ir::Storage& storage = graph_.storage(access.storage);
        if (storage.persistent || storage.role == ir::Role::kInput) continue;
        std::optional<ir::NodeId>& last = before[access.storage.index()];
        if (last && access.reads() && graph_.node(*last).phase == graph_.node(id).phase) {
          rises[static_cast<size_t>(places[last->index()]) + 1] += storage.bytes;
          falls[static_cast<size_t>(places[i]) + 1] += storage.bytes;
        }
        last = id;
      }
    }
    Bytes sum;
    for (size_t place = 0; place < alive_.size(); ++place) {
      sum = sum + rises[place] - falls[place];
      alive_[place] = Bytes(sum.value() * batches_.count);
    }
  }

  const ir::Graph& graph_;
  const MicroBatches& batches_;
  std::vector<Bytes> alive_;  // by place: of all micro-batches, when a stretch begins there
};

}  // namespace

MicroBatches findMicroBatches(const ir::Graph& graph) {
  const std::vector<MicroBatches::Read> reads = findReads(graph);
  const std::vector<int64_t> counts = countReads(graph, reads);
  const int64_t common = commonCount(graph, counts);
  for (int64_t count = common; count > 1; --count) {
    if (common % count != 0) continue;
    MicroBatches batches{.count = count, .reads = readsInParts(reads, counts, count)};
    if (isRepeated(graph, batches)) return batches;
  }
  return {};
}

std::vector<int64_t> findPlaces(const ir::Graph& graph, const MicroBatches& batches) {
  const int64_t each = batches.readsEach();
  std::vector<int64_t> places;
  size_t next = 0;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto before = static_cast<int64_t>(next);
    const int64_t gap = before > 0 && before % each == 0 ? 2 * each : 2 * (before % each);
    const bool isRead = next < batches.reads.size() && batches.reads[next].node.index() == i;
    places.push_back(isRead ? 2 * (before % each) + 1 : gap);
    if (isRead) ++next;
  }
  return places;
}

std::vector<int64_t> findCuts(const ir::Graph& graph, const MicroBatches& batches,
                              llvm::ArrayRef<int64_t> places, Bytes least) {
  return CutSearch(graph, batches, places).run(least);
}

}  // namespace stowage::passes
