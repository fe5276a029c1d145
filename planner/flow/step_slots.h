// SPDX-License-Identifier: Apache-2.0
//
// The step cut into slots of about equal time, so that a linear program about it stays small; a few
// nodes that take nearly all of it count as a slot each. Of each slot one node stands for its
// bytes: the one that needs the most.
#ifndef STOWAGE_PLANNER_FLOW_STEP_SLOTS_H_
#define STOWAGE_PLANNER_FLOW_STEP_SLOTS_H_

#include <cstdint>
#include <vector>

#include "planner/problem/gaps.h"

namespace stowage::planner {

struct StepSlots {
  std::vector<int32_t> slotOf;  // by node
  std::vector<int64_t> first;   // by slot: its first node
  std::vector<int64_t> widest;  // by slot: the node with the most bytes
  std::vector<int64_t> time;    // by slot: nanoseconds of its nodes
  std::vector<int64_t> load;    // by slot: bytes at the widest node

  int32_t count() const { return static_cast<int32_t>(first.size()); }
  int64_t nodeCount() const { return static_cast<int64_t>(slotOf.size()); }
  /// Of a position in any step.
  int32_t slotAt(int64_t position) const;
};

/// `loads`: bytes by node. At most `most` slots, none empty.
StepSlots cutStep(const GapTable& table, const std::vector<int64_t>& loads, int32_t most);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FLOW_STEP_SLOTS_H_
