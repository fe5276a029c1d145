// SPDX-License-Identifier: Apache-2.0
//
// One plan made ready on a CUDA device: prepared launches, and two CUDA events per event, this
// step's and the last one's.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_PROGRAM_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_PROGRAM_H_

#include <memory>

#include "runtime/cuda/cuda_state.h"
#include "runtime/cuda/host_ops.h"
#include "runtime/executor/device.h"
#include "runtime/torch/launcher.h"

namespace stowage::runtime {

/// Of the streams that launch ops on the device.
struct OpLaunchers {
  std::unique_ptr<Launcher> compute;
  std::unique_ptr<Launcher> link;
};

/// `state` outlives the program. `hostOps`: null if nothing runs on the host. Errors: kCuda.
ir::Expected<std::unique_ptr<Program>> makeCudaProgram(const ProgramSource& source,
                                                       CudaState& state, OpLaunchers launchers,
                                                       std::unique_ptr<HostOps> hostOps);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_PROGRAM_H_
