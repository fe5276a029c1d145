// SPDX-License-Identifier: Apache-2.0
//
// Offsets for everything an expansion needs: stays and temporary regions on the device above the
// reserved regions, host copies on the host. A stay that goes on in another one's bytes
// (in-place reuse) shares its place.
#ifndef STOWAGE_PLANNER_EVALUATE_ADDRESS_PLAN_H_
#define STOWAGE_PLANNER_EVALUATE_ADDRESS_PLAN_H_

#include <vector>

#include "planner/addresses/arena.h"
#include "planner/evaluate/expand.h"
#include "planner/evaluate/issue_order.h"

namespace stowage::planner {

struct AddressPlan {
  std::vector<int64_t> stays;   // by stay; of host stays: in the host arena
  std::vector<int64_t> temps;   // by step
  std::vector<int64_t> hosts;   // by storage
  std::vector<int64_t> delays;  // by stay: ticks by which its begin must be put off
  int64_t deviceHeight = 0;
  int64_t hostHeight = 0;
};

/// What needs a place on the device, and when.
struct DeviceItems {
  std::vector<ArenaItem> items;  // stays, then steps
  std::vector<int32_t> owner;    // by stay: the one whose item says where it is
  int64_t leastHeight = 0;       // no placement of them is lower
};
DeviceItems collectDeviceItems(const GapTable& table, const Expansion& expansion,
                               const IssueOrder& order);

/// Addresses on the device. `goal`: a height that is good enough.
AddressPlan planAddresses(const GapTable& table, const DeviceItems& device, int64_t period,
                          int64_t goal);
/// Adds the addresses on the host, once the order is final.
void planHostAddresses(const GapTable& table, const IssueOrder& order, AddressPlan& plan);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_ADDRESS_PLAN_H_
