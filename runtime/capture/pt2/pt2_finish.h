// SPDX-License-Identifier: Apache-2.0
//
// The last part of an import: a draft of the graph, and what its inputs are for -> the graph with
// roles, phases, module paths and names, and what a run has to know beside it.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_FINISH_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_FINISH_H_

#include <llvm/ADT/SmallVector.h>

#include <vector>

#include "runtime/capture/pt2/pt2_import.h"
#include "runtime/capture/pt2/pt2_roles.h"

namespace stowage::runtime {

/// The output that is the loss (none or one), and the gradients that the step returns.
struct Pt2Losses {
  llvm::SmallVector<ir::ValueId, 1> loss;
  std::vector<ir::ValueId> gradients;
};

/// The loss is the output that the signature calls so, else the first one that is a floating-point
/// number, else the first one.
Pt2Losses findLosses(const Pt2Program& program, const Pt2Graph& draft);

ImportedStep finishPt2Step(const Pt2RoleFacts& facts, const std::vector<Pt2InputRole>& roles,
                           const Pt2Losses& losses);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_FINISH_H_
