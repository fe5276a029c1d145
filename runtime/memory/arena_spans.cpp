// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/arena_spans.h"

#include <algorithm>
#include <utility>

namespace stowage::runtime {

namespace {

/// In whole alignment units.
ir::ByteRange spanOf(const ir::Graph& graph, const ir::Residency& residency,
                     const ir::Target& target) {
  const Bytes bytes = roundUp(graph.storage(residency.storage).bytes, target.alignBytes);
  return {residency.offset, residency.offset + bytes.value()};
}

}  // namespace

std::vector<ir::ByteRange> mergeSpans(std::vector<ir::ByteRange> spans) {
  std::sort(spans.begin(), spans.end());
  std::vector<ir::ByteRange> merged;
  for (const ir::ByteRange& span : spans) {
    if (span.isEmpty()) continue;
    if (!merged.empty() && span.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, span.end);
    } else {
      merged.push_back(span);
    }
  }
  return merged;
}

std::vector<ir::ByteRange> plannedSpans(const ir::Graph& graph, const ir::Schedule& schedule,
                                        const ir::Target& target, ir::Space space) {
  std::vector<ir::ByteRange> spans;
  for (const ir::Residency& residency : schedule.residencies) {
    if (residency.space == space) spans.push_back(spanOf(graph, residency, target));
  }
  if (space != ir::Space::kDevice) return mergeSpans(std::move(spans));
  for (const ir::Command& command : schedule.commands) {
    if (command.kind != ir::CommandKind::kRun) continue;
    spans.push_back({command.temp.offset, command.temp.offset + command.temp.bytes.value()});
  }
  for (const ir::ReservedRegion& region : schedule.reserved) {
    spans.push_back({region.offset.value(), region.offset.value() + region.bytes.value()});
  }
  return mergeSpans(std::move(spans));
}

std::vector<ir::ByteRange> stateSpans(const ir::Graph& graph, const ir::Schedule& schedule,
                                      const ir::Target& target, ir::Space space) {
  std::vector<ir::ByteRange> spans;
  for (const ir::BoundaryEntry& entry : schedule.boundary) {
    if (!ir::isState(graph.storage(entry.storage))) continue;
    for (const ir::ResidencyId id : entry.at) {
      const ir::Residency& residency = schedule.residency(id);
      if (residency.space == space) spans.push_back(spanOf(graph, residency, target));
    }
  }
  return mergeSpans(std::move(spans));
}

}  // namespace stowage::runtime
