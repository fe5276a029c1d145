// SPDX-License-Identifier: Apache-2.0
//
// Takes view nodes out of an imported graph: their results become values of the operand's storage,
// and nothing is launched for them. Types (sizes, strides, and the offset from the storage's base)
// must be the importer's; where a view starts is checked against the op's arguments, and that it
// ends inside the storage. An op that only sometimes makes a view (reshape, contiguous, to) is
// folded when the importer recorded its result on the operand's storage, and kept otherwise. Graphs
// of the tracer have no view nodes. Normalising pass, first in the list.
#ifndef STOWAGE_PASSES_NORMALISE_FOLD_VIEWS_H_
#define STOWAGE_PASSES_NORMALISE_FOLD_VIEWS_H_

#include "passes/manage/pass.h"

namespace stowage::passes {

class FoldViews : public Pass {
 public:
  std::string name() const override { return "fold-views"; }
  /// Errors: kInvalidIr for a view that is not where its op puts it, or that leaves its storage.
  ir::Expected<PassReport> run(PassState& state) const override;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_FOLD_VIEWS_H_
