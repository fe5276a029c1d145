// SPDX-License-Identifier: Apache-2.0
//
// Where an output may land on the bytes of an operand that dies with it: the op allows it (op
// table), operand and output have the same shape and layout, the operand is step-local, nobody
// needs it later, and no copy of it is due. The two live ranges then have one address.
#ifndef STOWAGE_PLANNER_EVALUATE_IN_PLACE_REUSE_H_
#define STOWAGE_PLANNER_EVALUATE_IN_PLACE_REUSE_H_

#include "planner/evaluate/expand.h"

namespace stowage::planner {

/// Sets `takes` of launches and `takenBy` of live ranges.
void reuseOperandsInPlace(const GapTable& table, Expansion& expansion);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_IN_PLACE_REUSE_H_
