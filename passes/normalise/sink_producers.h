// SPDX-License-Identifier: Apache-2.0
//
// Moves a node that only makes new tensors (a mask, a table, a cast) down to right before the first
// node that uses one of them, when that shortens more bytes of life than it lengthens: its results
// wait less, but what it reads may have to wait for it. Recomputing a value that nobody read before
// would waste its first launch; this is the free form of it. Moves only where every access keeps
// its version; random draws, collectives and unknown ops stay. Normalising pass.
#ifndef STOWAGE_PASSES_NORMALISE_SINK_PRODUCERS_H_
#define STOWAGE_PASSES_NORMALISE_SINK_PRODUCERS_H_

#include "passes/manage/pass.h"

namespace stowage::passes {

class SinkProducers : public Pass {
 public:
  std::string name() const override { return "sink-producers"; }
  ir::Expected<PassReport> run(PassState& state) const override;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_SINK_PRODUCERS_H_
