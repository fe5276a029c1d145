// SPDX-License-Identifier: Apache-2.0
//
// libtorch's own code for CUDA, in a process without a GPU: what it decides on the host by the
// properties of a device, which the test sets. The library is the one of the installed torch
// package whose CPU part this process has. The program that links this has to export its symbols:
// they take the place of libtorch's.
#ifndef STOWAGE_TESTS_SUPPORT_CUDA_PART_OF_TORCH_H_
#define STOWAGE_TESTS_SUPPORT_CUDA_PART_OF_TORCH_H_

#include <string>

namespace stowage::tests {

/// The folder of the libraries of the torch that `python` imports; "" where it has none.
std::string librariesOf(const std::string& python);
/// Loads libtorch_cuda.so from the folder. Returns what went wrong, or "".
std::string loadCudaPart(const std::string& folder);
/// A function of it by its mangled name; null.
void* cudaFunction(const char* name);
/// What the only device is from now on: 90 for compute capability 9.0.
void setCapability(int capability);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_CUDA_PART_OF_TORCH_H_
