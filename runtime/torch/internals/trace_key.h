// SPDX-License-Identifier: Apache-2.0
//
// The key of libtorch's dispatcher at which a step is traced.
#ifndef STOWAGE_RUNTIME_TORCH_INTERNALS_TRACE_KEY_H_
#define STOWAGE_RUNTIME_TORCH_INTERNALS_TRACE_KEY_H_

#include <c10/core/DispatchKey.h>

namespace stowage::runtime {

/// Below autograd and autocast, above all kernels of devices. libtorch has it for fake tensors of
/// its own, in C++, which nobody makes in a process that traces; no op and no backend has a kernel
/// for it yet. In 2.11 calls come here before they come to modes and subclasses of Python
/// (this_torch/python_first.h), in 2.15 after.
/// (tests/unit/runtime/torch/internals/trace_key_test.cpp)
constexpr c10::DispatchKey kTraceKey = c10::DispatchKey::Fake;

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_INTERNALS_TRACE_KEY_H_
