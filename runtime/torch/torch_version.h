// SPDX-License-Identifier: Apache-2.0
//
// Which libtorch this is: part of a target's identity, because it chooses kernels and so bits.
#ifndef STOWAGE_RUNTIME_TORCH_TORCH_VERSION_H_
#define STOWAGE_RUNTIME_TORCH_TORCH_VERSION_H_

#include <llvm/ADT/StringRef.h>

#include <string>

#include "ir/base/error.h"

namespace stowage::runtime {

/// "2.11.0", from the headers this was built with.
const char* torchVersion();

/// "2.11.0", of the libtorch that the process has loaded; "" where it does not say. Asks nothing of
/// CUDA.
std::string loadedTorchVersion();

/// That `loaded` is the libtorch this was built with, or unknown; another one may lie in a folder
/// of LD_LIBRARY_PATH. Errors: kEnvironment, naming both.
ir::Error checkLoadedTorch(llvm::StringRef loaded);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_TORCH_VERSION_H_
