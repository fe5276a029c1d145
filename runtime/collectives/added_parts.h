// SPDX-License-Identifier: Apache-2.0
//
// stowage::add_parts, for devices that have a kernel of their own for it (collective_ops.h says
// what it does).
#ifndef STOWAGE_RUNTIME_COLLECTIVES_ADDED_PARTS_H_
#define STOWAGE_RUNTIME_COLLECTIVES_ADDED_PARTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stowage::runtime {

/// Errors (c10::Error): those of the op.
void checkAddedParts(const at::Tensor& received, int64_t ranks);

/// By ops of libtorch, on any device.
at::Tensor addPartsByOps(const at::Tensor& received, int64_t ranks, bool mean);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_COLLECTIVES_ADDED_PARTS_H_
