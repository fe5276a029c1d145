// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_workspaces.h"

#include <ATen/cuda/CUDAContext.h>

#include <iterator>
#include <mutex>
#include <shared_mutex>
#include <tuple>

namespace stowage::runtime {

void dropWorkspaces(c10::cuda::CUDAStream stream) {
  for (at::cuda::WorkspaceMapWithMutex* workspaces :
       {&at::cuda::cublas_handle_stream_to_workspace(),
        &at::cuda::cublaslt_handle_stream_to_workspace()}) {
    const std::unique_lock<std::shared_mutex> lock(workspaces->mutex);
    for (auto entry = workspaces->map.begin(); entry != workspaces->map.end();) {
      const bool own = std::get<1>(entry->first) == static_cast<void*>(stream.stream());
      entry = own ? workspaces->map.erase(entry) : std::next(entry);
    }
  }
}

}  // namespace stowage::runtime
