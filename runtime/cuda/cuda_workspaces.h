// SPDX-License-Identifier: Apache-2.0
//
// The memory that libtorch lends to cuBLAS and cuBLASLt: allocated once per handle and stream, kept
// for ever. Streams of libtorch's pool come back, so whoever is done with one drops its workspaces.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_WORKSPACES_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_WORKSPACES_H_

#include <c10/cuda/CUDAStream.h>

namespace stowage::runtime {

/// Gives back the workspaces of a stream on which nothing runs.
void dropWorkspaces(c10::cuda::CUDAStream stream);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_WORKSPACES_H_
