// SPDX-License-Identifier: Apache-2.0
//
// Offsets for everything an expansion needs. On the device these are live ranges and temporary
// regions, above the reserved regions. On the host these are host copies. A live range that reuses
// another one's bytes in place has the same offset.
#ifndef STOWAGE_PLANNER_EVALUATE_ADDRESS_PLAN_H_
#define STOWAGE_PLANNER_EVALUATE_ADDRESS_PLAN_H_

#include <vector>

#include "planner/addresses/arena.h"
#include "planner/evaluate/enqueue_order.h"
#include "planner/evaluate/expand.h"

namespace stowage::planner {

struct AddressPlan {
  std::vector<int64_t> offsets;  // by live range; in the host arena if it is on the host
  std::vector<int64_t> temps;    // by launch
  std::vector<int64_t> hosts;    // by storage
  std::vector<int64_t> delays;   // by live range: ticks by which its begin is put off
  int64_t devicePeak = 0;
  int64_t hostPeak = 0;
};

/// What needs a place on the device, and when.
struct DeviceItems {
  std::vector<ArenaItem> items;  // live ranges, then launches
  std::vector<int32_t> owner;    // by live range: the one whose item has its offset
  int64_t leastPeak = 0;         // no placement of them has a lower peak
};
DeviceItems collectDeviceItems(const GapTable& table, const Expansion& expansion,
                               const EnqueueOrder& order);

/// Addresses on the device. `goal`: a peak that is good enough.
AddressPlan planAddresses(const GapTable& table, const DeviceItems& device, int64_t period,
                          int64_t goal);
/// Adds the addresses on the host, once the order is final.
void planHostAddresses(const GapTable& table, const EnqueueOrder& order, AddressPlan& plan);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_ADDRESS_PLAN_H_
