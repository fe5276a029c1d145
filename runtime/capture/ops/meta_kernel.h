// SPDX-License-Identifier: Apache-2.0
//
// Runs libtorch's own kernel for tensors without data ("meta") on throw-away copies of an op's
// arguments, and reads off what it returned: an argument itself, a view of an argument's storage,
// or new memory. Arguments that share a storage share one on the meta device too, so aliasing is
// found and not guessed from the schema. Not here: ops whose meta kernel is missing or wrong
// (shape_rules.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_META_KERNEL_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_META_KERNEL_H_

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {

/// Throws what the kernel throws (wrong shapes of the caller).
Outputs runMetaKernel(const TracedCall& call);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_META_KERNEL_H_
