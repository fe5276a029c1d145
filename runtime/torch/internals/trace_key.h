// SPDX-License-Identifier: Apache-2.0
//
// The key of libtorch's dispatcher at which a step is traced.
#ifndef STOWAGE_RUNTIME_TORCH_INTERNALS_TRACE_KEY_H_
#define STOWAGE_RUNTIME_TORCH_INTERNALS_TRACE_KEY_H_

#include <c10/core/DispatchKey.h>

namespace stowage::runtime {

/// Below autograd and autocast, above all kernels of devices, and used by nothing in libtorch: no
/// tensor has it, no op has a kernel for it.
/// (tests/unit/runtime/torch/internals/trace_key_test.cpp)
constexpr c10::DispatchKey kTraceKey = c10::DispatchKey::Fake;

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_INTERNALS_TRACE_KEY_H_
