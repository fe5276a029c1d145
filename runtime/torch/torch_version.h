// SPDX-License-Identifier: Apache-2.0
//
// Which libtorch this is: part of a target's identity, because it chooses kernels and so bits.
#ifndef STOWAGE_RUNTIME_TORCH_TORCH_VERSION_H_
#define STOWAGE_RUNTIME_TORCH_TORCH_VERSION_H_

namespace stowage::runtime {

/// "2.11.0", from the headers this was built with.
const char* torchVersion();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_TORCH_VERSION_H_
