// SPDX-License-Identifier: Apache-2.0
//
// Drops nodes without effect: no remaining node reads what they write, and it is neither state nor
// an output. All other results stay the same. These are always kept: nodes that draw random numbers
// (they advance the generator), collectives, ops outside the op table (they may have other
// effects), and nodes that write nothing (they exist for another effect). Storages and views that
// nothing names any more go too. Normalising pass.
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
