// SPDX-License-Identifier: Apache-2.0
//
// May each action be taken in its gap?
#ifndef STOWAGE_PLANNER_EVALUATE_ACTION_CHECKS_H_
#define STOWAGE_PLANNER_EVALUATE_ACTION_CHECKS_H_

#include <llvm/ADT/ArrayRef.h>

#include "ir/base/error.h"
#include "planner/problem/gaps.h"

namespace stowage::planner {

/// `actions` by gap. What must be on the host is, whatever was asked for. Errors: kInvalidArgument
/// naming the storage and the gap of the first one that is not possible there.
ir::Error checkActions(const GapTable& table, llvm::ArrayRef<ir::GapAction> actions);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_ACTION_CHECKS_H_
