// SPDX-License-Identifier: Apache-2.0
//
// Makes the workspaces of cuBLAS and cuBLASLt in the regions that a plan reserves for them. They
// belong to the compute stream, so the plan whose turn it is must place them.
#ifndef STOWAGE_RUNTIME_CUDA_PLACED_WORKSPACES_H_
#define STOWAGE_RUNTIME_CUDA_PLACED_WORKSPACES_H_

#include "ir/base/error.h"
#include "ir/schedule/schedule.h"
#include "runtime/cuda/cuda_state.h"

namespace stowage::runtime {

/// Nothing runs on the compute stream. Errors: kPlanMismatch when libtorch takes workspaces of
/// other sizes than the plan's; kUnsupported for another library's.
ir::Error placeWorkspaces(CudaState& device, const ir::Schedule& schedule);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_PLACED_WORKSPACES_H_
