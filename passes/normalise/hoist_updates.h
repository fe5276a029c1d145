// SPDX-License-Identifier: Apache-2.0
//
// Hoisted order: every node of the optimizer phase runs as early as the versions of its accesses
// allow, so that a gradient dies right after the backward node that completes it; what waits for
// nothing of the step (a state that decays before the gradient is added) comes right before what
// needs it, or last. The order of all other nodes, and of optimizer nodes among themselves where
// they depend on each other, stays. There is no rule about optimizers here: an update waits for the
// last writer of what it reads, and for the last reader and writer of what it writes; every access
// keeps its version. So tied weights wait for both contributions, and clipping by norm holds
// everything back, which the report's remark says. Normalising pass; run it after split-list-ops,
// which is what makes single updates.
#ifndef STOWAGE_PASSES_NORMALISE_HOIST_UPDATES_H_
#define STOWAGE_PASSES_NORMALISE_HOIST_UPDATES_H_

#include "passes/manage/pass.h"

namespace stowage::passes {

class HoistUpdates : public Pass {
 public:
  std::string name() const override { return "hoist-updates"; }
  ir::Expected<PassReport> run(PassState& state) const override;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_HOIST_UPDATES_H_
