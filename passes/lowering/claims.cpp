// SPDX-License-Identifier: Apache-2.0
#include "passes/lowering/claims.h"

#include <algorithm>

namespace stowage::passes {

namespace {

Bytes highestResidency(const ir::Graph& graph, const ir::Target& target,
                       const ir::Schedule& schedule, ir::Space space) {
  Bytes peak;
  for (const ir::Residency& residency : schedule.residencies) {
    if (residency.space != space) continue;
    const Bytes size = roundUp(graph.storage(residency.storage).bytes, target.alignBytes);
    peak = std::max(peak, Bytes(residency.offset) + size);
  }
  return peak;
}

Bytes highestRegion(const ir::Schedule& schedule) {
  Bytes peak;
  for (const ir::Command& command : schedule.commands) {
    if (command.temp.bytes.value() == 0) continue;
    peak = std::max(peak, Bytes(command.temp.offset) + command.temp.bytes);
  }
  for (const ir::ReservedRegion& region : schedule.reserved) {
    if (region.bytes.value() > 0) peak = std::max(peak, region.offset + region.bytes);
  }
  return peak;
}

Bytes copiedOn(const ir::Graph& graph, const ir::Target& target, const ir::Schedule& schedule,
               ir::Stream engine) {
  Bytes moved;
  for (const ir::Command& command : schedule.commands) {
    if (command.kind != ir::CommandKind::kCopy || command.stream != engine) continue;
    const ir::StorageId storage = schedule.residency(command.from).storage;
    moved += roundUp(graph.storage(storage).bytes, target.alignBytes);
  }
  return moved;
}

}  // namespace

ir::Prediction computeClaims(const ir::Graph& graph, const ir::Target& target,
                             const ir::Schedule& schedule, const planner::Timetable& timetable) {
  const Bytes onDevice = highestResidency(graph, target, schedule, ir::Space::kDevice);
  return {.peakBytes = std::max(onDevice, highestRegion(schedule)),
          .hostPeakBytes = highestResidency(graph, target, schedule, ir::Space::kHost),
          .stepTime = timetable.stepTime,
          .bound = Nanoseconds(),
          .computeTime = timetable.computeTime,
          .bytesOut = copiedOn(graph, target, schedule, ir::Stream::kDeviceToHost),
          .bytesIn = copiedOn(graph, target, schedule, ir::Stream::kHostToDevice)};
}

}  // namespace stowage::passes
