// SPDX-License-Identifier: Apache-2.0
//
// Makes libtorch believe that there is one CUDA device, for capturing steps for CUDA on a machine
// without GPU, driver or CUDA libraries. Autograd asks for an accelerator and its streams before it
// runs a backward pass over CUDA tensors, and some ops choose by what the device says it can do.
// The target -> answers. Never linked into anything that runs on CUDA: its own library
// (stowage_fake_gpu), which replaces the real answers when it is linked.
#ifndef STOWAGE_RUNTIME_TORCH_INTERNALS_FAKE_GPU_H_
#define STOWAGE_RUNTIME_TORCH_INTERNALS_FAKE_GPU_H_

#include "ir/base/error.h"
#include "ir/schedule/target.h"

namespace stowage::runtime {

/// To be called once, before libtorch is first asked about CUDA and before the process's first
/// backward pass, which counts the devices (first thing in main). Later calls change the target.
/// Where libtorch's CUDA libraries are loaded and find no GPU (Python), it may be called at any
/// time. Errors: kEnvironment when the process has a GPU.
ir::Error enableFakeGpu(const ir::Target& target);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_INTERNALS_FAKE_GPU_H_
