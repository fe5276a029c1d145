// SPDX-License-Identifier: Apache-2.0
//
// What a plan may do, by the words of `stowage plan --allow`. The same words serve Python.
#ifndef STOWAGE_PASSES_ALLOWED_ACTIONS_H_
#define STOWAGE_PASSES_ALLOWED_ACTIONS_H_

#include <llvm/ADT/StringRef.h>

#include "ir/base/error.h"

namespace stowage::passes {

struct PlanStepOptions;

struct AllowedActions {
  bool offload = true;
  bool recompute = true;
  bool inPlaceReuse = true;
  bool reorder = true;
  bool rowBlocks = true;
  /// Updates on the host. On a GPU their bits are those of the host's kernels.
  bool hostStep = false;
  friend bool operator==(const AllowedActions&, const AllowedActions&) = default;
};

/// "offload,row-blocks": these and nothing else; "none"; "host-step" alone comes on top of all the
/// others. Errors: kInvalidArgument with the words there are.
ir::Expected<AllowedActions> parseAllowed(llvm::StringRef list);

/// Budget, limits, pins and the disk stay as they are.
void setAllowed(const AllowedActions& allowed, PlanStepOptions& options);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_ALLOWED_ACTIONS_H_
