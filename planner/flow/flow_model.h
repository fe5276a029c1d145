// SPDX-License-Identifier: Apache-2.0
//
// The whole step as one linear program, in which bytes flow: at each slot of the step the bytes
// that are kept, have come back early, or have not left yet fit the budget; the links carry no more
// than they can while compute runs or waits; compute waits and recomputes as little as possible.
// All peaks, both links and both sides of the step boundary are in it at once, so its answer
// spreads what travels over the step. What it leaves out: that copies are whole, and what
// recomputes need themselves. The answer is rounded to an action per gap; evaluation says what it
// is worth.
#ifndef STOWAGE_PLANNER_FLOW_FLOW_MODEL_H_
#define STOWAGE_PLANNER_FLOW_FLOW_MODEL_H_

#include <cstdint>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/flow/cut_points.h"
#include "planner/flow/step_slots.h"

namespace stowage::planner {

/// What may be chosen, by gap.
struct FlowChoices {
  std::vector<bool> mayHost;
  std::vector<bool> mayRecompute;
};

/// Time of the links that is not to be had, by the node before which it was missing. Nanoseconds;
/// empty: none.
struct LostLinkTime {
  std::vector<int64_t> in;
  std::vector<int64_t> out;
};

struct FlowQuestion {
  int64_t budget = 0;              // bytes of the device
  std::vector<int64_t> loads;      // by node: bytes if nothing is chosen
  std::vector<int64_t> watched;    // nodes at which bytes must fit, beside the fullest of each slot
  const Actions* fixed = nullptr;  // by gap: copies that are made whatever is chosen
  bool settles = true;  // false: large storages may stay in parts; then less room is never faster
  LostLinkTime lost;
  const Actions* before = nullptr;  // an earlier answer: what it copies to the host is there
};

struct FlowAnswer {
  Actions actions;    // the fixed ones where nothing may be chosen
  int64_t time = 0;   // nanoseconds of the step as it flows, before rounding; a plan may take less
  int64_t waits = 0;  // of that time: compute waits for copies
  int64_t slotTime = 0;  // of the longest slot: what happens within a slot is not known
  StepSlots slots;
  bool fits = false;  // the bytes flow within the budget; false too if the program was not solved
};

/// `costs` by gap.
FlowAnswer chooseByFlow(const GapTable& table, const RecomputeCosts& costs,
                        const FlowChoices& choices, const FlowQuestion& question);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FLOW_FLOW_MODEL_H_
