// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/placed_workspaces.h"

#include <ATen/cuda/CUDAContext.h>

#include <string>

namespace stowage::runtime {
namespace {

void makeCublasWorkspace() { (void)at::cuda::getCurrentCUDABlasHandle(); }
void makeCublasLtWorkspace() { (void)at::cuda::getCUDABlasLtWorkspace(); }

}  // namespace

ir::Error placeWorkspaces(CudaState& device, const ir::Schedule& schedule) {
  dropWorkspaces(device.compute);
  for (const ir::ReservedRegion& region : schedule.reserved) {
    const bool isLt = region.what == "cublaslt";
    if (!isLt && region.what != "cublas") {
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           "the plan reserves a workspace for '" + region.what + "'");
    }
    const auto wanted = static_cast<int64_t>(isLt ? at::cuda::getCUDABlasLtWorkspaceSize()
                                                  : at::cuda::getChosenWorkspaceSize());
    if (wanted != region.bytes.value()) {
      return ir::makeError(ir::ErrorCode::kPlanMismatch,
                           "the plan is for a workspace of " + region.what + " of " +
                               std::to_string(region.bytes.value()) + " bytes, libtorch takes " +
                               std::to_string(wanted) + " here");
    }
    if (ir::Error error =
            device.placeWorkspace(region, isLt ? makeCublasLtWorkspace : makeCublasWorkspace)) {
      return error;
    }
  }
  return ir::success();
}

}  // namespace stowage::runtime
