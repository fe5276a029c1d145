// SPDX-License-Identifier: Apache-2.0
//
// How near kernels come to a GPU's published rates: one row of shares per kind of kernel, the same
// for every GPU. Fitted to the ops of twelve training steps on an H100 and an H200
// (planner/targets/README.md). Work and target in, time out.
#ifndef STOWAGE_PLANNER_TARGETS_OP_EFFICIENCY_H_
#define STOWAGE_PLANNER_TARGETS_OP_EFFICIENCY_H_

#include "ir/base/units.h"
#include "ir/graph/type.h"
#include "ir/schedule/target.h"
#include "planner/targets/op_work.h"

namespace stowage::planner {

/// Dense operations per second in a dtype; that of f32 for a dtype without a rate of its own.
int64_t flopRate(const ir::Target& target, ir::DType dtype);

/// Of the kernels of one op, on a CUDA target. More work of a kind never takes less time.
Nanoseconds kernelTime(const ir::Target& target, const OpWork& work);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_TARGETS_OP_EFFICIENCY_H_
