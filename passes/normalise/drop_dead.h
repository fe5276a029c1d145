// SPDX-License-Identifier: Apache-2.0
//
// Leaves out nodes that have no effect: what they write is neither read by a node that stays, nor
// state, nor an output. Results of all other nodes stay as they are. Kept in any case: nodes that
// draw random numbers (they advance the generator), collectives, ops that the op table does not
// know (they may do more than they say), and nodes that write nothing (they are there to do more).
// Storages and views that nobody names any more go too. Normalising pass.
#ifndef STOWAGE_PASSES_NORMALISE_DROP_DEAD_H_
#define STOWAGE_PASSES_NORMALISE_DROP_DEAD_H_

#include "passes/manage/pass.h"

namespace stowage::passes {

class DropDead : public Pass {
 public:
  std::string name() const override { return "drop-dead"; }
  ir::Expected<PassReport> run(PassState& state) const override;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_DROP_DEAD_H_
