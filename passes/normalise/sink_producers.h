// SPDX-License-Identifier: Apache-2.0
//
// Moves a node that only makes new tensors (a mask, a table, a cast) to just before the first node
// that uses one of them, when this shortens live ranges by more bytes than it lengthens: the
// results live shorter, the operands may live longer. The effect is that of dropping and
// recomputing the results, without a second launch. Moves only where every access keeps its
// version; random draws, collectives and unknown ops stay. Normalising pass.
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
