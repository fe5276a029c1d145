// SPDX-License-Identifier: Apache-2.0
//
// Hoisted order: every update runs as early as the versions of its accesses allow, so a gradient
// dies soon after the backward node that completes it. An update stays together: a node that only
// the optimizer needs goes with the first that needs it, unless that one waits for the end of
// backward (the norms of clipped gradients do not wait). Nodes without in-step dependencies go just
// before their first use, or last. All other nodes keep their order, and so do optimizer nodes that
// depend on each other. No rule names an optimizer: an update comes after the last writer of what
// it reads, and after the last reader and writer of what it writes; every access keeps its version.
// So tied weights wait for both contributions. Clipping by norm delays every update; a remark in
// the report says so.
// Normalising pass; run it after split-list-ops, which splits the optimizer's list ops into
// single updates.
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
