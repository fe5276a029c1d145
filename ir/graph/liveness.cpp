// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/liveness.h"

#include <cassert>

namespace stowage::ir {

namespace {

NodeRange computeLiveRange(const Storage& storage, const std::vector<Touch>& touches,
                           int64_t nodeCount) {
  if (touches.empty()) return {};
  const Touch& first = touches.front();
  const bool arrivesFilled = storage.persistent || first.reads;
  return {.begin = arrivesFilled ? 0 : first.position,
          .end = storage.persistent ? nodeCount : touches.back().position + 1};
}

}  // namespace

std::vector<StorageLife> computeLives(const Graph& graph) {
  std::vector<StorageLife> lives(graph.storages().size());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (graph.nodes()[i].onHost) continue;
    for (const Access& access : graph.accesses(NodeId(i))) {
      lives[access.storage.index()].touches.push_back(
          {.position = static_cast<int64_t>(i),
           .reads = access.reads(),
           .writes = access.writes(),
           .whole = access.whole,
           .version = access.writes() ? access.writtenVersion : access.readVersion});
    }
  }
  const auto nodeCount = static_cast<int64_t>(graph.nodes().size());
  for (size_t i = 0; i < lives.size(); ++i) {
    lives[i].live = computeLiveRange(graph.storages()[i], lives[i].touches, nodeCount);
  }
  return lives;
}

std::vector<int64_t> computeKeepAllBytes(const Graph& graph, int64_t alignBytes,
                                         const std::vector<Bytes>& temporaries) {
  const size_t nodeCount = graph.nodes().size();
  assert(temporaries.size() == nodeCount && "one entry per node");
  std::vector<int64_t> change(nodeCount + 1, 0);
  const std::vector<StorageLife> lives = computeLives(graph);
  for (size_t i = 0; i < lives.size(); ++i) {
    const Storage& storage = graph.storages()[i];
    if (storage.home == Space::kHost || lives[i].live.isEmpty()) continue;
    const int64_t bytes = roundUp(storage.bytes, alignBytes).value();
    change[static_cast<size_t>(lives[i].live.begin)] += bytes;
    change[static_cast<size_t>(lives[i].live.end)] -= bytes;
  }
  std::vector<int64_t> needed(nodeCount, 0);
  int64_t held = 0;
  for (size_t i = 0; i < nodeCount; ++i) {
    held += change[i];
    needed[i] = held + temporaries[i].value();
  }
  return needed;
}

}  // namespace stowage::ir
