// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/address_plan.h"

#include <algorithm>

namespace stowage::planner {

namespace {

// One item per group of live ranges that share a place. The earliest of them owns the item.
std::vector<int32_t> findPlaceOwners(const Expansion& expansion) {
  std::vector<int32_t> owner(expansion.liveRanges.size());
  for (size_t i = 0; i < owner.size(); ++i) owner[i] = static_cast<int32_t>(i);
  // Launches come in order, so an operand's owner is final when it is handed on.
  for (const Launch& launch : expansion.launches) {
    if (launch.takes < 0) continue;
    const LiveRange& taken = expansion.liveRanges[static_cast<size_t>(launch.takes)];
    owner[static_cast<size_t>(taken.takenBy)] = owner[static_cast<size_t>(launch.takes)];
  }
  return owner;
}

std::vector<ArenaItem> collectItems(const GapTable& table, const Expansion& expansion,
                                    const EnqueueOrder& order, const std::vector<int32_t>& owner) {
  std::vector<ArenaItem> items(expansion.liveRanges.size() + expansion.launches.size());
  for (size_t i = 0; i < expansion.liveRanges.size(); ++i) {
    const LiveRange& range = expansion.liveRanges[i];
    if (range.isHost) continue;
    ArenaItem& item = items[static_cast<size_t>(owner[i])];
    item.bytes = table.bytes(range.storage);
    const ir::TickRange& alive = order.liveTicks[i];
    if (item.alive.isEmpty() || alive.begin < item.alive.begin) item.latest = order.latestBegins[i];
    item.alive = item.alive.isEmpty()
                     ? alive
                     : ir::TickRange{.begin = std::min(item.alive.begin, alive.begin),
                                     .end = std::max(item.alive.end, alive.end)};
  }
  for (size_t i = 1; i < expansion.launches.size(); ++i) {
    items[expansion.liveRanges.size() + i] = {
        .bytes = table.temporary(expansion.launches[i].node.index()),
        .alive = order.launches[i],
        .latest = order.launches[i].begin};
  }
  return items;
}

}  // namespace

DeviceItems collectDeviceItems(const GapTable& table, const Expansion& expansion,
                               const EnqueueOrder& order) {
  DeviceItems device{.items = {}, .owner = findPlaceOwners(expansion)};
  device.items = collectItems(table, expansion, order, device.owner);
  device.leastPeak = findLeastPeak(device.items, order.period, table.reservedBytes());
  return device;
}

AddressPlan planAddresses(const GapTable& table, const DeviceItems& device, int64_t period,
                          int64_t goal) {
  AddressPlan plan;
  const Placement placement = placeItems(device.items, period, table.reservedBytes(), goal);
  plan.devicePeak = placement.peak;
  for (const int32_t owner : device.owner) {
    plan.offsets.push_back(placement.offsets[static_cast<size_t>(owner)]);
    plan.delays.push_back(placement.delays[static_cast<size_t>(owner)]);
  }
  plan.temps.assign(placement.offsets.begin() + static_cast<int64_t>(device.owner.size()),
                    placement.offsets.end());
  return plan;
}

void planHostAddresses(const GapTable& table, const EnqueueOrder& order, AddressPlan& plan) {
  std::vector<ArenaItem> hosts;
  for (size_t i = 0; i < order.hosts.size(); ++i) {
    hosts.push_back({.bytes = table.bytes(ir::StorageId(i)),
                     .alive = order.hosts[i],
                     .latest = order.hosts[i].begin});
  }
  const Placement host = placeItems(hosts, order.period, 0, INT64_MAX);
  plan.hosts = host.offsets;
  plan.hostPeak = host.peak;
}

}  // namespace stowage::planner
