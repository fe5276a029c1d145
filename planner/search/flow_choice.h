// SPDX-License-Identifier: Apache-2.0
//
// Chooses actions for the whole step at once, by the linear program of planner/flow. That leaves
// out what recomputes need themselves and counts bytes at one node of a slot. So the program is
// asked again, with what was missing and with more nodes to watch, until the choice fits.
#ifndef STOWAGE_PLANNER_SEARCH_FLOW_CHOICE_H_
#define STOWAGE_PLANNER_SEARCH_FLOW_CHOICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/flow/flow_model.h"
#include "planner/search/choose_actions.h"
#include "planner/search/fixed_actions.h"

namespace stowage::planner {

struct FlowRule {
  int64_t target = 0;  // device bytes to stay below, reserved regions included
  int32_t cuts = 0;    // points at which chains of recomputes end; 0: nothing is recomputed
  bool offload = true;
  LostLinkTime lost;
};

class FlowChooser {
 public:
  /// `fixed` must be possible; `loads`: bytes by node with it. The table must outlive the chooser.
  FlowChooser(const GapTable& table, FixedActions fixed, std::vector<int64_t> loads);

  /// What is worth trying, the likely ones first; each allows something else.
  std::vector<FlowRule> rules(bool all) const;
  /// Possible (expand succeeds), but may need more than the target. No actions if none are
  /// possible, or if the step would probably take `slowest` or more.
  Choice choose(const FlowRule& rule, int64_t slowest) const;
  /// Nanoseconds that a step takes at least with so many bytes, as far as the program knows: copies
  /// and recomputes in parts, in a small step chains of any length. Hardly any plan is faster, but
  /// it is no proof. Nothing where the program finds no way.
  std::optional<int64_t> estimate(int64_t budget) const;

 private:
  /// By gap, when chains of recomputes end at so many points.
  struct Recomputable {
    int32_t cuts = 0;
    std::vector<bool> may;
  };
  void findRecomputable();
  FlowChoices makeChoices(bool offload, std::vector<bool> mayRecompute) const;

  const GapTable* table_;
  FixedActions fixed_;
  std::vector<int64_t> loads_;
  RecomputeCosts costs_;
  std::vector<Recomputable> recomputable_;  // each different from the others
  std::vector<bool> mayRecompute_;          // with some of them
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_FLOW_CHOICE_H_
