// SPDX-License-Identifier: Apache-2.0
//
// What else would do where nothing fits: each action that was not allowed, no limit of the host,
// half the batch. Each is asked of the same planner, so a number that is said works; that of half
// the batch is a bound, because its step is not at hand. Not here: pins, which the planner names.
#ifndef STOWAGE_PASSES_WAYS_OUT_H_
#define STOWAGE_PASSES_WAYS_OUT_H_

#include <string>
#include <vector>

#include "passes/plan_step.h"

namespace stowage::passes {

/// Other options for the same step, and what differs: "allow row-blocks".
struct Variation {
  std::string change;
  PlanStepOptions options;
};

/// What `options` leave out that would make a difference, one at a time, and all of it at once
/// where that is more than one.
ir::Expected<std::vector<Variation>> findVariations(const ir::Graph& graph,
                                                    const PlanStepOptions& options);

/// What was asked of planStep, and what else may be.
struct RefusedStep {
  const ir::Graph& graph;
  const ir::Target& target;
  const ir::CostTable& costs;
  const PlanStepOptions& options;
  std::vector<Variation> variations;
  bool isByPolicy = false;  // what half the batch needs is not known of a policy
};

/// Adds to an infeasible error the variations that fit its budget, or that need less than the error
/// says, and half the batch. Other errors stay as they are. Plans once for each, so it takes a few
/// times as long as the error itself. Errors: as arrangeGraph.
ir::Expected<ir::PlanError> addWaysOut(const RefusedStep& step, ir::PlanError error);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_WAYS_OUT_H_
