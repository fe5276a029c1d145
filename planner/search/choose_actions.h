// SPDX-License-Identifier: Apache-2.0
//
// Chooses by one rule which storages leave the device so that the step fits.
// It walks the nodes once. Where bytes exceed the target, it gives up gaps open there. It takes the
// cheapest recompute if its time per byte is at most the rule's price or the best offload's stall
// per byte, or if no offload is possible. Else it takes the offload with the least stall, then the
// furthest next use (Belady). The search (planner/search/budget_search.h) tries many rules and
// evaluates each. Bytes here leave out what a recompute itself needs; expanding the choice corrects
// that.
#ifndef STOWAGE_PLANNER_SEARCH_CHOOSE_ACTIONS_H_
#define STOWAGE_PLANNER_SEARCH_CHOOSE_ACTIONS_H_

#include <vector>

#include "planner/search/fixed_actions.h"

namespace stowage::planner {

struct ChoiceRule {
  int64_t target = 0;                  // device bytes to stay below, reserved regions included
  int64_t hostTarget = INT64_MAX / 4;  // host bytes to stay below
  int64_t recomputePrice = 0;  // nanoseconds per MiB up to which a recompute is preferred to a copy
};

struct Choice {
  Actions actions;
  int64_t bytes = 0;  // at the fullest node, before any prefetch
  int64_t waits = 0;  // nanoseconds that compute is expected to wait for copies; 0: not known
};

class ActionChooser {
 public:
  /// Errors: as expand, if the fixed actions alone are not possible.
  static ir::Expected<ActionChooser> make(const GapTable& table, FixedActions fixed);

  /// Always possible (expand succeeds); may need more than the target.
  Choice choose(const ChoiceRule& rule) const;

  /// Nothing chosen beyond what is fixed.
  const FixedActions& fixed() const { return fixed_; }

 private:
  ActionChooser(const GapTable& table, FixedActions fixed)
      : table_(&table), fixed_(std::move(fixed)) {}

  const GapTable* table_;
  FixedActions fixed_;
  std::vector<int64_t> loads_;  // by node, with the fixed actions
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_CHOOSE_ACTIONS_H_
