// SPDX-License-Identifier: Apache-2.0
//
// One rule-made answer to "what leaves, so that the step fits": walks the nodes once; where the
// bytes exceed the target, gives up gaps that are open there until they do not. Recomputes come
// first as long as they cost less per byte than the rule's price, cheapest first; then copies to
// the host, furthest next use first (Belady); then what is left. The search
// (planner/search/budget_search.h) tries many rules and lets evaluation judge. Bytes here are by
// node position, so what a recompute needs beside it is not seen; the corrections that a look at
// the expansion gives are fed back.
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
