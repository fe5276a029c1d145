// SPDX-License-Identifier: Apache-2.0
//
// The gradients of masked_scatter's source and of masked_select's input, made of ops whose results
// have a size without values.
// For the first, libtorch's kernel selects by the mask, so the size of what it makes is a value.
// For the second, its kernel fails where the mask has more elements than the gradient, which a
// refused step may meet. Here the elements are counted and copied to their places; the rest is
// zero. The bits are the same.
#ifndef STOWAGE_RUNTIME_CAPTURE_DISPATCH_MASKED_SCATTER_H_
#define STOWAGE_RUNTIME_CAPTURE_DISPATCH_MASKED_SCATTER_H_

namespace stowage::runtime {

/// Once per process; changes traced threads only.
void registerMaskedScatter();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_DISPATCH_MASKED_SCATTER_H_
