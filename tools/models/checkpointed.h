// SPDX-License-Identifier: Apache-2.0
//
// Gradient checkpointing the way users of libtorch write it by hand: a block keeps its input alone,
// and backward recomputes it. What plans are compared with; capture sees the recompute as ordinary
// operations. The block must not draw random numbers.
#ifndef STOWAGE_TOOLS_MODELS_CHECKPOINTED_H_
#define STOWAGE_TOOLS_MODELS_CHECKPOINTED_H_

#include <ATen/core/Tensor.h>

#include <functional>

namespace stowage::tools {

using Block = std::function<at::Tensor(const at::Tensor&)>;

/// block(x). Gradients of what `block` refers to are added up in backward, as always.
at::Tensor checkpointed(const Block& block, const at::Tensor& x);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MODELS_CHECKPOINTED_H_
