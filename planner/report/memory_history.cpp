// SPDX-License-Identifier: Apache-2.0
#include "planner/report/memory_history.h"

#include <algorithm>

#include "ir/costs/unplanned_peak.h"
#include "ir/graph/liveness.h"
#include "planner/evaluate/timeline.h"

namespace stowage::planner {

namespace {

constexpr auto kTemporaries = static_cast<size_t>(MemoryGroup::kTemporaries);

void addTo(GroupBytes& sum, const GroupBytes& part) {
  for (size_t group = 0; group < kMemoryGroupCount; ++group) sum[group] += part[group];
}

}  // namespace

Bytes MemoryHistory::peak() const {
  int64_t most = 0;
  for (const MemoryPoint& point : points) most = std::max(most, sumOf(point.bytes));
  return Bytes(most);
}

MemoryHistory findUnplannedMemory(const ir::Graph& graph, const ir::Target& target,
                                  const ir::NodeCosts& costs) {
  const size_t nodes = graph.nodes().size();
  std::vector<GroupBytes> change(nodes + 1, GroupBytes{});
  const std::vector<ir::StorageLife> lives = ir::computeLives(graph);
  for (size_t i = 0; i < lives.size(); ++i) {
    const ir::Storage& storage = graph.storages()[i];
    if (storage.home == ir::Space::kHost || lives[i].live.isEmpty()) continue;
    const auto group = static_cast<size_t>(memoryGroupOf(storage.role));
    const int64_t bytes = roundUp(storage.bytes, target.alignBytes).value();
    change[static_cast<size_t>(lives[i].live.begin)][group] += bytes;
    change[static_cast<size_t>(lives[i].live.end)][group] -= bytes;
  }
  MemoryHistory history;
  GroupBytes held{};
  held[kTemporaries] = ir::sumReserved(target.reserved, target.alignBytes).value();
  for (size_t i = 0; i < nodes; ++i) {
    addTo(held, change[i]);
    MemoryPoint point{.start = history.stepTime, .bytes = held};
    point.bytes[kTemporaries] += costs.nodes[i].temporary.value();
    history.points.push_back(point);
    history.stepTime += costs.time(ir::NodeId(i));
  }
  return history;
}

MemoryHistory findPlannedMemory(const ExplainInput& input) {
  const ResidencySpans spans(input.graph, input.schedule, input.alignBytes);
  const std::vector<GroupBytes> bytes = spans.bytesByCommand();
  const Timeline timeline =
      computeTimeline(input.graph, input.schedule, input.costs, input.alignBytes);
  GroupBytes reserved{};
  reserved[kTemporaries] = ir::sumReserved(input.schedule.reserved, input.alignBytes).value();
  MemoryHistory history{.points = {}, .stepTime = timeline.stepTime};
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (input.schedule.commands[i].stream != ir::Stream::kCompute) continue;
    MemoryPoint point{.start = timeline.start[i], .bytes = bytes[i]};
    addTo(point.bytes, reserved);
    history.points.push_back(point);
  }
  return history;
}

}  // namespace stowage::planner
