// SPDX-License-Identifier: Apache-2.0
//
// Deferred updates: updates of parameters leave the end of their step and run in the next one,
// just before their parameter is read. So optimizer state travels beside forward, too, while links
// would idle. What such an update reads of its own step (gradients, a clip coefficient) waits for
// it: these storages become `pending`, and the nodes belong to the phase `deferred`. One step of
// the new graph is a step of the old one without its deferred updates, after those of the step
// before; to run the pending updates alone ends the last step. Every update reads and writes the
// same versions as before.
// Which: those that wait for the end of backward, as with clipping by norm, whose norm reads all
// gradients: there is no other work beside them, so their state travels while the device idles.
// Only where most bytes of parameters are updated so; otherwise the graph stays as it is. Deferred
// with an update is all of the optimizer that must follow it. Not deferred: what reads an input,
// makes an output, draws random numbers, is a collective or an unknown op, and what that depends
// on. Nothing is deferred where a step overwrites state without reading it first: running the
// pending updates alone would lose it. Normalising pass; run it after hoist-updates, which places
// what is not deferred.
#ifndef STOWAGE_PASSES_NORMALISE_DEFER_UPDATES_H_
#define STOWAGE_PASSES_NORMALISE_DEFER_UPDATES_H_

#include "passes/manage/pass.h"

namespace stowage::passes {

class DeferUpdates : public Pass {
 public:
  std::string name() const override { return "defer-updates"; }
  ir::Expected<PassReport> run(PassState& state) const override;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_DEFER_UPDATES_H_
